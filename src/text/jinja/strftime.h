#pragma once
// Dates as Python's strftime writes them, in the C locale. Free functions, thread-safe.

#include <cstdint>
#include <string>
#include <string_view>

#include "text/jinja/heap.h"

namespace pagoda::text::jinja {

// `date`: "YYYY-MM-DDTHH:MM:SS", or "YYYY-MM-DD" for midnight. Fails when it is neither.
[[nodiscard]] std::string format_time(Heap& heap, std::string_view date, std::string_view format);

// That moment in local time, in that form.
[[nodiscard]] std::string local_time(std::int64_t unix_seconds);

}  // namespace pagoda::text::jinja
