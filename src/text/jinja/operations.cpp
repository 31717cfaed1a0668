#include "text/jinja/operations.h"

#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "text/jinja/failure.h"
#include "text/jinja/object.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

std::string_view type_name(const Value& value) {
    switch (value.kind()) {
        case Value::Kind::kUndefined:
            return "Undefined";
        case Value::Kind::kNone:
            return "NoneType";
        case Value::Kind::kBool:
            return "bool";
        case Value::Kind::kInt:
            return "int";
        case Value::Kind::kFloat:
            return "float";
        case Value::Kind::kText:
            return "str";
        case Value::Kind::kSequence:
            return value.is_tuple() ? "tuple" : "list";
        case Value::Kind::kDict:
            return "dict";
        case Value::Kind::kObject:
            return value.object().type_name();
    }
    return "object";
}

bool is_true(const Value& value) {
    switch (value.kind()) {
        case Value::Kind::kUndefined:
        case Value::Kind::kNone:
            return false;
        case Value::Kind::kBool:
            return value.boolean();
        case Value::Kind::kInt:
            return value.integer() != 0;
        case Value::Kind::kFloat:
            return value.number() != 0;
        case Value::Kind::kText:
            return !value.view().empty();
        case Value::Kind::kSequence:
            return !value.items().empty();
        case Value::Kind::kDict:
            return value.dict().size() != 0;
        case Value::Kind::kObject:
            return value.object().is_true();
    }
    return false;
}

bool is_callable(const Value& value) {
    return value.is_undefined() || (value.is_object() && value.object().is_callable());
}

void require_defined(const Value& value) {
    if (value.is_undefined()) fail_undefined(value);
}

void fail_undefined(const Value& value) {
    const auto& origin = value.undefined().origin;
    if (origin == nullptr) fail("an undefined value is used");
    if (!origin->hint.empty()) fail(origin->hint);
    if (origin->object_type.empty()) fail(fmt::format("'{}' is undefined", origin->name));
    if (origin->is_forbidden) {
        fail(fmt::format("access to attribute '{}' of '{}' object is unsafe", origin->name,
                         origin->object_type));
    }
    if (origin->is_element) {
        fail(fmt::format("{} object has no element {}", origin->object_type, origin->name));
    }
    fail(fmt::format("'{} object' has no attribute '{}'", origin->object_type, origin->name));
}

Value undefined_name(std::string_view name) {
    return Value(Undefined{std::make_shared<UndefinedOrigin>(
        UndefinedOrigin{{}, {}, std::string(name), false, false})});
}

Value undefined_hint(std::string hint) {
    return Value(Undefined{
        std::make_shared<UndefinedOrigin>(UndefinedOrigin{std::move(hint), {}, {}, false, false})});
}

Value undefined_attribute(const Value& object, std::string_view name) {
    return Value(Undefined{std::make_shared<UndefinedOrigin>(
        UndefinedOrigin{{}, std::string(type_name(object)), std::string(name), false, false})});
}

Value Runtime::call(const Value& callee, const CallArguments& arguments) {
    if (callee.is_undefined()) fail_undefined(callee);
    if (!callee.is_object()) {
        fail(fmt::format("'{}' object is not callable", type_name(callee)));
    }
    const Level level(*this);
    tick();
    const Value::ObjectPtr kept = callee.object_ptr();
    return kept->call(*this, arguments);
}

void Runtime::fail_depth() {
    --depth_;
    fail_limit("the chat template's calls are nested too deeply");
}

std::optional<std::int64_t> parse_integer(std::string_view text, int base) {
    text = strip_space(text);
    std::string digits;
    bool is_negative = false;
    if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
        is_negative = text[0] == '-';
        text.remove_prefix(1);
    }
    const auto has_prefix = [&text](char kind) {
        return text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == kind;
    };
    for (const auto& [kind, radix] : {std::pair('x', 16), std::pair('o', 8), std::pair('b', 2)}) {
        if ((base == radix || base == 0) && has_prefix(kind)) {
            base = radix;
            text.remove_prefix(2);
            break;
        }
    }
    if (base == 0) base = 10;
    if (base < 2 || base > 36) return {};
    for (std::size_t at = 0; at < text.size(); ++at) {
        const bool is_separator =
            text[at] == '_' && at > 0 && at + 1 < text.size() && text[at - 1] != '_';
        if (!is_separator) digits += text[at];
    }
    std::uint64_t magnitude = 0;
    const char* const last = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), last, magnitude, base);
    if (parsed.ec == std::errc::result_out_of_range ||
        (parsed.ec == std::errc() && parsed.ptr == last &&
         magnitude > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))) {
        fail(fmt::format("the integer {} does not fit in 64 bits", digits.substr(0, 40)));
    }
    if (parsed.ec != std::errc() || parsed.ptr != last || digits.empty()) return {};
    const auto number = static_cast<std::int64_t>(magnitude);
    return is_negative ? -number : number;
}

std::optional<double> parse_float(std::string_view text) {
    text = strip_space(text);
    bool is_negative = false;
    if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
        is_negative = text[0] == '-';
        text.remove_prefix(1);
    }
    std::string digits = to_lower(text);
    double value = 0;
    if (digits == "inf" || digits == "infinity") {
        value = std::numeric_limits<double>::infinity();
    } else if (digits == "nan") {
        value = std::numeric_limits<double>::quiet_NaN();
    } else {
        if (digits.empty() || (digits[0] != '.' && (digits[0] < '0' || digits[0] > '9'))) return {};
        std::string plain;
        for (std::size_t at = 0; at < digits.size(); ++at) {
            const bool is_separator =
                digits[at] == '_' && at > 0 && at + 1 < digits.size() && digits[at - 1] != '_';
            if (!is_separator) plain += digits[at];
        }
        const char* const last = plain.data() + plain.size();
        const auto parsed = std::from_chars(plain.data(), last, value);
        if (parsed.ptr != last || parsed.ec == std::errc::invalid_argument) return {};
        if (parsed.ec == std::errc::result_out_of_range) {
            const bool is_tiny = plain.find("e-") != std::string::npos;
            value = is_tiny ? 0.0 : std::numeric_limits<double>::infinity();
        }
    }
    return is_negative ? -value : value;
}

}  // namespace pagoda::text::jinja
