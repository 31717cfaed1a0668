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

// REQUIRES: not empty.
[[nodiscard]] double median(std::vector<double> values);

}  // namespace pagoda::apps
