#pragma once
// HTML escaping, for the few templates that escape. Free function, thread-safe.

#include <string>
#include <string_view>

namespace pagoda::text::jinja {

[[nodiscard]] std::string escape_html(std::string_view text);

}  // namespace pagoda::text::jinja
