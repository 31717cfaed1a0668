#pragma once
// Python's two ways of formatting: "%s" % values and "{}".format(values). Free functions.

#include "text/jinja/native.h"
#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

// `values`: a tuple, a dictionary for %(name)s, or one value.
[[nodiscard]] Value format_percent(Runtime& runtime, const Value& format, const Value& values);
[[nodiscard]] Value format_braces(Runtime& runtime, const Value& format,
                                  const CallArguments& arguments);

}  // namespace pagoda::text::jinja
