#pragma once
// What the bench commands read from their command line. Pure.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "command.h"

namespace pagoda::apps {

// An option that is a list of integers, or `fallback` where it is not given.
[[nodiscard]] base::Result<std::vector<std::int64_t>> integer_list(const Arguments& arguments,
                                                                   std::string_view option,
                                                                   std::string_view fallback,
                                                                   std::int64_t least,
                                                                   std::int64_t most);

// Options as numbers, many in a row: the first error stays, and what was not a number is the
// fallback.
class Numbers final {
  public:
    explicit Numbers(const Arguments& arguments) : arguments_(arguments) {}
    std::int64_t integer(std::string_view option, std::int64_t fallback, std::int64_t least,
                         std::int64_t most);
    double number(std::string_view option, double fallback, double least, double most);
    [[nodiscard]] const base::Status& status() const { return status_; }

  private:
    const Arguments& arguments_;  // outlives this
    base::Status status_;
};

// REQUIRES: not empty.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace pagoda::apps
