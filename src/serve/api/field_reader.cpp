#include "serve/api/field_reader.h"

#include <cmath>

#include <fmt/core.h>

#include "base/utf8.h"

namespace pagoda::api {

namespace {

// Names that are reported fill a header; what does not fit there need not be collected.
constexpr std::size_t kMaxIgnored = 400;
constexpr std::size_t kMaxNameBytes = 200;

}  // namespace

std::string brief(const base::Json& value) {
    constexpr std::size_t kLongest = 60;
    if (value.is_array() || value.is_object()) return std::string(value.type_name());
    // A long string is cut before it is escaped, too: it may be most of the body.
    const std::string text = value.is_string()
                                 ? base::Json(base::cut_utf8(value.as_string(), kLongest)).dump()
                                 : value.dump();
    if (text.size() <= kLongest) return text;
    return std::string(base::cut_utf8(text, kLongest)) + "...";
}

std::string FieldReader::full_name(std::string_view name) const {
    return prefix_ + std::string(name);
}

void FieldReader::fail(base::Error error) {
    if (!error_) error_ = std::move(error);
}

void FieldReader::wrong_type(std::string_view name, std::string_view expected,
                             const base::Json& got) {
    const std::string field = full_name(name);
    fail(base::invalid(fmt::format("{} must be {}, got {}", field, expected, brief(got)), field));
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
        const std::string field = full_name(name);
        fail(base::invalid(
            fmt::format("{} is {}, must be between {} and {}", field, brief(*value), least, most),
            field));
        return std::nullopt;
    }
    return result;
}

std::int64_t FieldReader::integer(std::string_view name, std::int64_t fallback, std::int64_t least,
                                  std::int64_t most) {
    return integer(name, least, most).value_or(fallback);
}

double FieldReader::number(std::string_view name, double fallback) {
    const base::Json* value = any(name);
    if (value == nullptr) return fallback;
    if (value->is_number()) return value->as_double();
    wrong_type(name, "a number", *value);
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
    const std::string field = full_name(name);
    fail(base::Error{base::ErrorCode::kUnsupported,
                     fmt::format("{} is not supported: {}", field, reason), field});
}

base::Json FieldReader::take(std::string_view name) {
    read_.emplace(name);
    base::Json* value = body_.find(name);
    return value == nullptr ? base::Json() : std::move(*value);
}

std::optional<FieldReader> FieldReader::nested(std::string_view name) {
    if (object(name) == nullptr) return std::nullopt;
    return FieldReader(*body_.find(name), full_name(name) + ".");
}

void FieldReader::absorb(const FieldReader& inner) {
    if (!inner.ok()) fail(inner.error());
    for (const std::string& name : inner.unread()) ignore(name);
}

void FieldReader::ignore(std::string_view name) {
    if (ignored_inside_.size() < kMaxIgnored)
        ignored_inside_.emplace(base::cut_utf8(name, kMaxNameBytes));
}

std::vector<std::string> FieldReader::unread() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : body_.as_object()) {
        if (names.size() == kMaxIgnored) return names;
        if (!read_.contains(name))
            names.push_back(prefix_ + std::string(base::cut_utf8(name, kMaxNameBytes)));
    }
    names.insert(names.end(), ignored_inside_.begin(), ignored_inside_.end());
    return names;
}

}  // namespace pagoda::api
