#pragma once
// JSON in and out of templates: input variables become values, and tojson writes what Python's
// json.dumps writes. Free functions.

#include <string>

#include "base/json.h"
#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

// Input is not charged to a heap: its size is limited where it is received. Fails when it nests
// deeper than values may.
[[nodiscard]] Value from_json(const base::Json& json);

struct JsonStyle {
    bool is_indented = false;
    std::string indent;  // one level, when is_indented
    std::string item_separator = ", ";
    std::string key_separator = ": ";
    bool ensure_ascii = false;
    bool sort_keys = false;
};
[[nodiscard]] std::string dump_json(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace pagoda::text::jinja
