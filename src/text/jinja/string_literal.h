#pragma once
// The escapes of a quoted string: Python's, as Jinja reads them. Free function, thread-safe.

#include <string>
#include <string_view>

namespace pagoda::text::jinja {

struct StringLiteral {
    std::string text;
    std::string error;  // empty when all is well
};

// `body` is what stands between the quotes. Unknown escapes stay as they are.
[[nodiscard]] StringLiteral decode_string_literal(std::string_view body);

}  // namespace pagoda::text::jinja
