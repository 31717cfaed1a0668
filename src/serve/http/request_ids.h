#pragma once
// RequestIds: ids that no two requests of any process share, for headers and logs. Thread-safe.

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace pagoda::http {

class RequestIds {
  public:
    RequestIds();
    [[nodiscard]] std::string next();
    // A client's id that may be repeated in headers and logs: 1 to 128 visible ASCII characters.
    [[nodiscard]] static bool is_sane(std::string_view id);

  private:
    std::uint64_t process_;  // random
    std::atomic<std::uint64_t> counter_{0};
};

}  // namespace pagoda::http
