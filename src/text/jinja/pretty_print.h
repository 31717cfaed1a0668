#pragma once
// The layout of Python's pprint.pformat at 80 columns. Free function.

#include <string>

#include "text/jinja/runtime.h"

namespace pagoda::text::jinja {

[[nodiscard]] std::string pretty_print(Runtime& runtime, const Value& value);

}  // namespace pagoda::text::jinja
