#pragma once
// Dates as Python's strftime writes them, in the C locale. Free functions, thread-safe.

#include <string>
#include <string_view>

#include "text/jinja/heap.h"

namespace pagoda::text::jinja {

// `date`: "YYYY-MM-DDTHH:MM:SS", or "YYYY-MM-DD" for midnight. Fails when it is neither.
[[nodiscard]] std::string format_time(Heap& heap, std::string_view date, std::string_view format);

// Today's date at midnight, local time, in that form: the text of a prompt stays the same all day,
// so that its prefix can be found in a cache.
[[nodiscard]] std::string today();

}  // namespace pagoda::text::jinja
