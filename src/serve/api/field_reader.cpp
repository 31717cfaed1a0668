#include "serve/api/field_reader.h"

#include <cmath>

#include <fmt/core.h>

#include "base/utf8.h"

namespace pagoda::api {

std::string brief(const base::Json& value) {
    constexpr std::size_t kLongest = 60;
    std::string text =
        value.is_array() || value.is_object() ? std::string(value.type_name()) : value.dump();
    if (text.size() <= kLongest) return text;
    text.resize(kLongest);
    text.resize(base::complete_utf8_prefix(text));
    return text + "...";
}

void FieldReader::fail(base::Error error) {
    if (!error_) error_ = std::move(error);
}

void FieldReader::wrong_type(std::string_view name, std::string_view expected,
                             const base::Json& got) {
    fail(base::invalid(fmt::format("{} must be {}, got {}", name, expected, brief(got)),
                       std::string(name)));
}

const base::Json* FieldReader::any(std::string_view name) {
    read_.emplace(name);
    const base::Json* value = body_.find(name);
    return value == nullptr || value->is_null() ? nullptr : value;
}

bool FieldReader::boolean(std::string_view name, bool fallback) {
    const base::Json* value = any(name);
    if (value == nullptr) return fallback;
    if (value->is_bool()) return value->as_bool();
    wrong_type(name, "a boolean", *value);
    return fallback;
}

std::optional<std::int64_t> FieldReader::integer(std::string_view name, std::int64_t least,
                                                 std::int64_t most) {
    const base::Json* value = any(name);
    if (value == nullptr) return std::nullopt;
    std::optional<std::int64_t> result;
    if (value->is_int()) {
        result = value->as_int();
    } else if (value->is_number()) {
        // JSON has one kind of number: 5.0 is an integer; 1e308 is one, too, but out of range.
        const double real = value->as_double();
        if (std::abs(real) < 0x1p53 && real == std::floor(real))
            result = static_cast<std::int64_t>(real);
    }
    if (!value->is_number() || (!result && std::abs(value->as_double()) < 0x1p53)) {
        wrong_type(name, "an integer", *value);
        return std::nullopt;
    }
    if (!result || *result < least || *result > most) {
        fail(base::invalid(
            fmt::format("{} is {}, must be between {} and {}", name, brief(*value), least, most),
            std::string(name)));
        return std::nullopt;
    }
    return result;
}

std::int64_t FieldReader::integer(std::string_view name, std::int64_t fallback, std::int64_t least,
                                  std::int64_t most) {
    return integer(name, least, most).value_or(fallback);
}

double FieldReader::number(std::string_view name, double fallback, double least, double most) {
    const base::Json* value = any(name);
    if (value == nullptr) return fallback;
    if (!value->is_number()) {
        wrong_type(name, "a number", *value);
        return fallback;
    }
    const double real = value->as_double();
    if (real >= least && real <= most) return real;
    fail(base::invalid(
        fmt::format("{} is {}, must be between {} and {}", name, brief(*value), least, most),
        std::string(name)));
    return fallback;
}

std::optional<std::string> FieldReader::string(std::string_view name) {
    const base::Json* value = any(name);
    if (value == nullptr) return std::nullopt;
    if (value->is_string()) return value->as_string();
    wrong_type(name, "a string", *value);
    return std::nullopt;
}

const base::Json* FieldReader::array(std::string_view name) {
    const base::Json* value = any(name);
    if (value == nullptr || value->is_array()) return value;
    wrong_type(name, "an array", *value);
    return nullptr;
}

const base::Json* FieldReader::object(std::string_view name) {
    const base::Json* value = any(name);
    if (value == nullptr || value->is_object()) return value;
    wrong_type(name, "an object", *value);
    return nullptr;
}

void FieldReader::refuse_unless(std::string_view name, bool asks_for_nothing,
                                std::string_view reason) {
    if (any(name) == nullptr || asks_for_nothing) return;
    fail(base::Error{base::ErrorCode::kUnsupported,
                     fmt::format("{} is not supported: {}", name, reason), std::string(name)});
}

std::vector<std::string> FieldReader::unread() const {
    std::vector<std::string> names;
    for (const base::Json::Member& member : body_.as_object()) {
        if (!read_.contains(member.first)) names.push_back(member.first);
    }
    return names;
}

}  // namespace pagoda::api
