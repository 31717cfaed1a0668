// Filters over numbers.

#include <charconv>
#include <cmath>
#include <string>

#include <fmt/core.h>

#include "text/jinja/attribute_path.h"
#include "text/jinja/failure.h"
#include "text/jinja/native.h"
#include "text/jinja/operations.h"

namespace pagoda::text::jinja {

namespace {

Value absolute(Runtime&, const Value& subject, const Bound&) {
    require_defined(subject);
    if (subject.is_float()) return Value(std::fabs(subject.number()));
    if (!subject.is_integral())
        fail(fmt::format("bad operand type for abs(): '{}'", type_name(subject)));
    return subject.integral() < 0 ? negate(subject) : Value(subject.integral());
}

std::optional<std::int64_t> to_integer(double number) {
    if (!std::isfinite(number)) return {};
    if (std::fabs(number) >= 9.2e18) fail("the number does not fit in 64 bits");
    return static_cast<std::int64_t>(number);
}

Value integer(Runtime&, const Value& subject, const Bound& arguments) {
    require_defined(subject);
    std::optional<std::int64_t> number;
    if (subject.is_text()) {
        number = parse_integer(subject.view(), static_cast<int>(arguments.integer(1, 10)));
        if (!number) {
            if (const auto real = parse_float(subject.view())) number = to_integer(*real);
        }
    } else if (subject.is_float()) {
        number = to_integer(subject.number());
    } else if (subject.is_integral()) {
        number = subject.integral();
    }
    if (number) return Value(*number);
    return arguments.has(0) ? arguments.at(0) : Value(std::int64_t{0});
}

Value real(Runtime&, const Value& subject, const Bound& arguments) {
    require_defined(subject);
    std::optional<double> number;
    if (subject.is_text()) number = parse_float(subject.view());
    if (subject.is_number()) number = subject.number();
    if (number) return Value(*number);
    return arguments.has(0) ? arguments.at(0) : Value(0.0);
}

// To the nearest, ties to even, by way of the exact decimal digits as Python does it.
double rounded(double value, std::int64_t precision) {
    if (!std::isfinite(value) || precision > 320) return value;
    if (precision < -308) return std::copysign(0.0, value);
    if (precision < 0) {
        const double unit = std::pow(10.0, static_cast<double>(-precision));
        return std::nearbyint(value / unit) * unit;
    }
    std::string digits(700, '\0');
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value,
                                       std::chars_format::fixed, static_cast<int>(precision));
    double result = value;
    std::from_chars(digits.data(), written.ptr, result);
    return result;
}

std::int64_t rounded_integer(std::int64_t value, std::int64_t precision) {
    if (precision >= 0) return value;
    if (precision < -18) return 0;
    std::int64_t unit = 1;
    for (std::int64_t each = precision; each < 0; ++each) unit *= 10;
    const std::int64_t rest = value % unit;
    const std::int64_t base = value - rest;
    const std::int64_t distance = std::abs(rest) * 2 - unit;  // beyond half
    const bool rounds_away = distance > 0 || (distance == 0 && (base / unit) % 2 != 0);
    std::int64_t result = base;
    if (rounds_away && __builtin_add_overflow(base, rest < 0 ? -unit : unit, &result)) {
        fail("the number does not fit in 64 bits");
    }
    return result;
}

Value round_value(Runtime&, const Value& subject, const Bound& arguments) {
    require_defined(subject);
    const std::int64_t precision = arguments.integer(0, 0);
    const std::string_view method = arguments.view(1, "common");
    if (!subject.is_number()) fail(fmt::format("type {} can't be rounded", type_name(subject)));
    if (method == "common") {
        if (subject.is_integral()) return Value(rounded_integer(subject.integral(), precision));
        return Value(rounded(subject.number(), precision));
    }
    const double unit = std::pow(10.0, static_cast<double>(precision));
    const double scaled = subject.number() * unit;
    if (method == "ceil") return Value(std::ceil(scaled) / unit);
    if (method == "floor") return Value(std::floor(scaled) / unit);
    fail("the method of round() must be common, ceil or floor");
}

Value sum(Runtime& runtime, const Value& subject, const Bound& arguments) {
    const AttributePath path(runtime, arguments.has(0) ? arguments.at(0) : Value::none());
    Value total = arguments.has(1) ? arguments.at(1) : Value(std::int64_t{0});
    if (total.is_text()) fail("sum() can't sum strings [use ''.join(seq) instead]");
    const Value sequence = to_sequence(runtime, subject);
    for (const Value& item : sequence.items()) {
        total = arithmetic(runtime, Operator::kAdd, total, path.of(runtime, item));
    }
    return total;
}

Value filesizeformat(Runtime& runtime, const Value& subject, const Bound& arguments) {
    static constexpr std::string_view kUnits = "kMGTPEZY";
    require_defined(subject);
    const bool is_binary = arguments.boolean(0, false);
    const double base = is_binary ? 1024 : 1000;
    double bytes = 0;
    if (subject.is_number()) {
        bytes = subject.number();
    } else {
        const auto parsed = subject.is_text() ? parse_float(subject.view()) : std::nullopt;
        if (!parsed)
            fail(fmt::format("filesizeformat() needs a number, got {}", type_name(subject)));
        bytes = *parsed;
    }
    if (bytes == 1) return runtime.heap().text("1 Byte");
    if (bytes < base)
        return runtime.heap().text(fmt::format("{} Bytes", to_integer(bytes).value_or(0)));
    std::size_t unit = 0;
    double size = base;
    while (unit + 1 < kUnits.size() && bytes >= size * base) {
        size *= base;
        ++unit;
    }
    char prefix = kUnits[unit];
    if (is_binary && prefix == 'k') prefix = 'K';
    return runtime.heap().text(
        fmt::format("{:.1f} {}{}", bytes / size, prefix, is_binary ? "iB" : "B"));
}

constexpr NativeSpec kNumberFilters[] = {
    {"abs", "", 0, absolute},           {"int", "default base", 0, integer},
    {"float", "default", 0, real},      {"round", "precision method", 0, round_value},
    {"sum", "attribute start", 0, sum}, {"filesizeformat", "binary", 0, filesizeformat},
};

}  // namespace

std::span<const NativeSpec> number_filters() {
    return kNumberFilters;
}

}  // namespace pagoda::text::jinja
