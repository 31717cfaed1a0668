#pragma once
// CHECK(condition, message): a broken invariant prints file, line, condition and message to
// standard error and aborts. Never for outside input, which gets a Result. The message is only
// evaluated on failure.

#include <string_view>

namespace pagoda::base {

[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view message) noexcept;

}  // namespace pagoda::base

#define CHECK(condition, message) \
    (static_cast<bool>(condition) \
         ? static_cast<void>(0)   \
         : ::pagoda::base::check_failed(__FILE__, __LINE__, #condition, (message)))
