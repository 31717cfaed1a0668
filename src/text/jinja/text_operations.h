#pragma once
// What string methods and filters of the same meaning share. Results are bounded by the heap's
// room; work is counted. Free functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/runtime.h"

namespace pagoda::text::jinja {

// str.replace; `count` below 0 replaces all.
[[nodiscard]] std::string replace_text(Runtime& runtime, std::string_view text,
                                       std::string_view from, std::string_view to,
                                       std::int64_t count = -1);
// Byte offset of the first or last occurrence, or nothing. Linear time, whatever the needle.
[[nodiscard]] std::optional<std::size_t> find_text(Runtime& runtime, std::string_view text,
                                                   std::string_view part);
[[nodiscard]] std::optional<std::size_t> find_last_text(Runtime& runtime, std::string_view text,
                                                        std::string_view part);
// str.split and rsplit; `limit` below 0 splits everywhere. An empty separator splits at space.
struct SplitOptions {
    std::string_view separator;
    std::int64_t limit = -1;
    bool from_right = false;
};
[[nodiscard]] Value split_text(Runtime& runtime, std::string_view text,
                               const SplitOptions& options);
// str.center, ljust, rjust: `align` is '^', '<' or '>'.
[[nodiscard]] std::string padded(Runtime& runtime, std::string_view text, std::int64_t width,
                                 char align, std::string_view fill);

}  // namespace pagoda::text::jinja
