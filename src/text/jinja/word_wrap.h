#pragma once
// Breaking a line of text into lines, as Python's textwrap does it. Free function.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/runtime.h"

namespace pagoda::text::jinja {

struct WrapOptions {
    std::int64_t width = 79;
    bool break_long_words = true;
    bool break_on_hyphens = true;
};

[[nodiscard]] std::vector<std::string> wrap_line(Runtime& runtime, std::string_view line,
                                                 const WrapOptions& options);

}  // namespace pagoda::text::jinja
