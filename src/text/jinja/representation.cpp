#include <fmt/core.h>

#include "base/utf8.h"
#include "text/jinja/number_text.h"
#include "text/jinja/object.h"
#include "text/jinja/operations.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

std::string quoted(std::string_view text) {
    const bool has_single = text.find('\'') != std::string_view::npos;
    const bool has_double = text.find('"') != std::string_view::npos;
    const char quote = has_single && !has_double ? '"' : '\'';
    std::string out(1, quote);
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint point = first_code_point(text.substr(at));
        at += point.bytes;
        if (point.code == static_cast<char32_t>(quote) || point.code == '\\') {
            out += '\\';
            out += static_cast<char>(point.code);
        } else if (point.code == '\n') {
            out += "\\n";
        } else if (point.code == '\r') {
            out += "\\r";
        } else if (point.code == '\t') {
            out += "\\t";
        } else if (is_printable(point.code)) {
            base::append_utf8(out, point.code);
        } else if (point.code <= 0xFF) {
            out += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(point.code));
        } else if (point.code <= 0xFFFF) {
            out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(point.code));
        } else {
            out += fmt::format("\\U{:08x}", static_cast<std::uint32_t>(point.code));
        }
    }
    out += quote;
    return out;
}

namespace {

void append_items(Runtime& runtime, TextBuilder& out, const Value& sequence) {
    const bool is_tuple = sequence.is_tuple();
    out.append(is_tuple ? '(' : '[');
    bool is_first = true;
    for (const Value& item : sequence.items()) {
        if (!is_first) out.append(", ");
        is_first = false;
        append_repr(runtime, out, item);
    }
    if (is_tuple && sequence.items().size() == 1) out.append(',');
    out.append(is_tuple ? ')' : ']');
}

void append_entries(Runtime& runtime, TextBuilder& out, const Dict& dict) {
    out.append('{');
    bool is_first = true;
    for (const auto& [key, value] : dict.entries()) {
        if (!is_first) out.append(", ");
        is_first = false;
        append_repr(runtime, out, key);
        out.append(": ");
        append_repr(runtime, out, value);
    }
    out.append('}');
}

}  // namespace

void append_repr(Runtime& runtime, TextBuilder& out, const Value& value) {
    const Runtime::Level level(runtime);
    runtime.tick();
    switch (value.kind()) {
        case Value::Kind::kUndefined:
            return out.append("Undefined");
        case Value::Kind::kNone:
            return out.append("None");
        case Value::Kind::kBool:
            return out.append(value.boolean() ? "True" : "False");
        case Value::Kind::kInt:
            return out.append(std::to_string(value.integer()));
        case Value::Kind::kFloat:
            return out.append(float_repr(value.number()));
        case Value::Kind::kText:
            runtime.meter().tick_bytes(value.view().size());
            if (!value.text().is_markup) return out.append(quoted(value.view()));
            return out.append("Markup(" + quoted(value.view()) + ")");
        case Value::Kind::kSequence:
            return append_items(runtime, out, value);
        case Value::Kind::kDict:
            return append_entries(runtime, out, value.dict());
        case Value::Kind::kObject:
            return value.object().append_repr(runtime, out);
    }
}

void append_string(Runtime& runtime, TextBuilder& out, const Value& value) {
    if (value.is_text()) {
        runtime.meter().tick_bytes(value.view().size());
        out.append(value.view());
    } else if (!value.is_undefined()) {
        append_repr(runtime, out, value);
    }
}

std::string to_string(Runtime& runtime, const Value& value) {
    TextBuilder out(runtime.heap());
    append_string(runtime, out, value);
    return out.take();
}

Value to_text(Runtime& runtime, const Value& value) {
    if (value.is_text()) return value;
    return runtime.heap().text(to_string(runtime, value));
}

}  // namespace pagoda::text::jinja
