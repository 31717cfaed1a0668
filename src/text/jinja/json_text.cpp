#include "text/jinja/json_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "base/utf8.h"
#include "text/jinja/failure.h"
#include "text/jinja/number_text.h"
#include "text/jinja/operations.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

namespace {

Value text_from(const std::string& bytes) {
    return make_text(base::is_valid_utf8(bytes) ? bytes : base::replace_invalid_utf8(bytes));
}

Value from_json_at(const base::Json& json, int depth) {
    if (depth > Heap::kMaxDepth) {
        fail_limit(fmt::format("the input is nested deeper than {}", Heap::kMaxDepth));
    }
    switch (json.type()) {
        case base::Json::Type::kNull:
            return Value::none();
        case base::Json::Type::kBool:
            return Value(json.as_bool());
        case base::Json::Type::kInt:
            return Value(json.as_int());
        case base::Json::Type::kDouble:
            return Value(json.as_double());
        case base::Json::Type::kString:
            return text_from(json.as_string());
        case base::Json::Type::kArray: {
            auto sequence = std::make_shared<Sequence>();
            sequence->items.reserve(json.as_array().size());
            for (const base::Json& item : json.as_array()) {
                sequence->items.push_back(from_json_at(item, depth + 1));
                sequence->depth = std::max(sequence->depth, sequence->items.back().depth() + 1);
            }
            return Value(Value::SequencePtr(std::move(sequence)));
        }
        case base::Json::Type::kObject: {
            auto dict = std::make_shared<Dict>();
            for (const auto& [key, value] : json.as_object()) {
                dict->append(text_from(key), from_json_at(value, depth + 1));
            }
            return Value(Value::DictPtr(std::move(dict)));
        }
    }
    return {};
}

class JsonWriter {
  public:
    JsonWriter(Runtime& runtime, const JsonStyle& style)
        : runtime_(runtime), style_(style), out_(runtime.heap()) {}

    std::string run(const Value& value) {
        write(value, 0);
        return out_.take();
    }

  private:
    void write(const Value& value, int level) {
        const Runtime::Level guard(runtime_);
        runtime_.tick();
        switch (value.kind()) {
            case Value::Kind::kNone:
                return out_.append("null");
            case Value::Kind::kBool:
                return out_.append(value.boolean() ? "true" : "false");
            case Value::Kind::kInt:
                return out_.append(std::to_string(value.integer()));
            case Value::Kind::kFloat:
                return out_.append(number(value.number()));
            case Value::Kind::kText:
                return write_text(value.view());
            case Value::Kind::kSequence:
                return write_items(value.items(), level);
            case Value::Kind::kDict:
                return write_entries(value.dict(), level);
            default:
                fail(fmt::format("Object of type {} is not JSON serializable", type_name(value)));
        }
    }

    static std::string number(double value) {
        if (std::isnan(value)) return "NaN";
        if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
        return float_repr(value);
    }

    void write_text(std::string_view text) {
        runtime_.meter().tick_bytes(text.size());
        out_.append('"');
        std::size_t plain = 0;  // begin of what needs no escape
        for (std::size_t at = 0; at < text.size();) {
            const CodePoint point = first_code_point(text.substr(at));
            const bool is_escaped = point.code < 0x20 || point.code == '"' || point.code == '\\' ||
                                    (style_.ensure_ascii && point.code >= 0x7F);
            if (is_escaped) {
                out_.append(text.substr(plain, at - plain));
                out_.append(escaped(point.code));
                plain = at + point.bytes;
            }
            at += point.bytes;
        }
        out_.append(text.substr(plain));
        out_.append('"');
    }

    static std::string escaped(char32_t code) {
        static constexpr std::string_view kPlain = "\"\\\n\r\t\f\b";
        static constexpr std::string_view kLetters = "\"\\nrtfb";
        if (code < 0x80) {
            const auto known = kPlain.find(static_cast<char>(code));
            if (known != std::string_view::npos) return std::string("\\") + kLetters[known];
        }
        if (code <= 0xFFFF) return fmt::format("\\u{:04x}", static_cast<std::uint32_t>(code));
        const std::uint32_t rest = static_cast<std::uint32_t>(code) - 0x10000;
        return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10U), 0xDC00 + (rest & 0x3FFU));
    }

    void write_break(int level) {
        if (!style_.is_indented) return;
        out_.append('\n');
        out_.fill(static_cast<std::size_t>(level), style_.indent);
    }

    void write_items(const std::vector<Value>& items, int level) {
        if (items.empty()) return out_.append("[]");
        out_.append('[');
        bool is_first = true;
        for (const Value& item : items) {
            if (!is_first) out_.append(style_.item_separator);
            is_first = false;
            write_break(level + 1);
            write(item, level + 1);
        }
        write_break(level);
        out_.append(']');
    }

    void write_entries(const Dict& dict, int level) {
        if (dict.size() == 0) return out_.append("{}");
        std::vector<const Dict::Entry*> entries;
        for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
        if (style_.sort_keys) {
            std::stable_sort(entries.begin(), entries.end(), [this](const auto* a, const auto* b) {
                return less(runtime_.meter(), a->first, b->first);
            });
        }
        out_.append('{');
        bool is_first = true;
        for (const Dict::Entry* entry : entries) {
            if (!is_first) out_.append(style_.item_separator);
            is_first = false;
            write_break(level + 1);
            write_text(key_text(entry->first));
            out_.append(style_.key_separator);
            write(entry->second, level + 1);
        }
        write_break(level);
        out_.append('}');
    }

    static std::string key_text(const Value& key) {
        if (key.is_text()) return std::string(key.view());
        if (key.is_none()) return "null";
        if (key.is_bool()) return key.boolean() ? "true" : "false";
        if (key.is_int()) return std::to_string(key.integer());
        if (key.is_float()) return number(key.number());
        fail(fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
    }

    Runtime& runtime_;
    const JsonStyle& style_;
    TextBuilder out_;
};

}  // namespace

Value from_json(const base::Json& json) {
    return from_json_at(json, 0);
}

std::string dump_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
    return JsonWriter(runtime, style).run(value);
}

}  // namespace pagoda::text::jinja
