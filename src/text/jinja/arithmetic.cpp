#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "text/jinja/failure.h"
#include "text/jinja/format_string.h"
#include "text/jinja/markup.h"
#include "text/jinja/operations.h"

namespace pagoda::text::jinja {

namespace {

std::string_view symbol_of(Operator op) {
    switch (op) {
        case Operator::kAdd:
            return "+";
        case Operator::kSubtract:
            return "-";
        case Operator::kMultiply:
            return "*";
        case Operator::kDivide:
            return "/";
        case Operator::kFloorDivide:
            return "//";
        case Operator::kModulo:
            return "%";
        default:
            return "**";
    }
}

[[noreturn]] void fail_operands(Operator op, const Value& left, const Value& right) {
    if (op == Operator::kAdd && left.is_text()) {
        fail(fmt::format("can only concatenate str (not \"{}\") to str", type_name(right)));
    }
    if (op == Operator::kAdd && left.is_sequence()) {
        fail(fmt::format("can only concatenate {} (not \"{}\") to {}", type_name(left),
                         type_name(right), type_name(left)));
    }
    fail(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", symbol_of(op),
                     type_name(left), type_name(right)));
}

[[noreturn]] void fail_overflow(Operator op) {
    fail(fmt::format("the result of '{}' does not fit in 64 bits", symbol_of(op)));
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
    std::int64_t result = 1;
    while (exponent > 0) {
        if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
            fail_overflow(Operator::kPower);
        }
        exponent >>= 1;
        if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
            fail_overflow(Operator::kPower);
        }
    }
    return result;
}

Value float_arithmetic(Operator op, double left, double right) {
    const bool divides =
        op == Operator::kDivide || op == Operator::kFloorDivide || op == Operator::kModulo;
    if (divides && right == 0) fail("division by zero");
    switch (op) {
        case Operator::kAdd:
            return Value(left + right);
        case Operator::kSubtract:
            return Value(left - right);
        case Operator::kMultiply:
            return Value(left * right);
        case Operator::kDivide:
            return Value(left / right);
        case Operator::kFloorDivide:
        case Operator::kModulo: {
            // As Python: the remainder takes the sign of the divisor.
            double remainder = std::fmod(left, right);
            double quotient = (left - remainder) / right;
            if (remainder != 0 && (right < 0) != (remainder < 0)) {
                remainder += right;
                quotient -= 1;
            }
            if (remainder == 0) remainder = std::copysign(0.0, right);
            if (op == Operator::kModulo) return Value(remainder);
            if (quotient == 0) return Value(std::copysign(0.0, left / right));
            const double floored = std::floor(quotient);
            return Value(quotient - floored > 0.5 ? floored + 1 : floored);
        }
        default:
            if (left == 0 && right < 0) fail("0.0 cannot be raised to a negative power");
            if (left < 0 && std::floor(right) != right) fail("complex numbers are not supported");
            return Value(std::pow(left, right));
    }
}

Value integer_arithmetic(Operator op, std::int64_t left, std::int64_t right) {
    std::int64_t result = 0;
    switch (op) {
        case Operator::kAdd:
            if (__builtin_add_overflow(left, right, &result)) fail_overflow(op);
            return Value(result);
        case Operator::kSubtract:
            if (__builtin_sub_overflow(left, right, &result)) fail_overflow(op);
            return Value(result);
        case Operator::kMultiply:
            if (__builtin_mul_overflow(left, right, &result)) fail_overflow(op);
            return Value(result);
        case Operator::kFloorDivide:
        case Operator::kModulo: {
            if (right == 0) fail("integer division or modulo by zero");
            if (right == -1) {
                if (op == Operator::kModulo) return Value(std::int64_t{0});
                if (left == std::numeric_limits<std::int64_t>::min()) fail_overflow(op);
                return Value(-left);
            }
            const bool rounds_down = left % right != 0 && (left % right < 0) != (right < 0);
            if (op == Operator::kModulo) return Value(left % right + (rounds_down ? right : 0));
            return Value(left / right - (rounds_down ? 1 : 0));
        }
        case Operator::kPower:
            if (right >= 0) return Value(power(left, right));
            break;
        default:
            break;
    }
    return float_arithmetic(op, static_cast<double>(left), static_cast<double>(right));
}

Value add_texts(Runtime& runtime, const Value& left, const Value& right) {
    const bool is_markup = left.text().is_markup || right.text().is_markup;
    TextBuilder out(runtime.heap());
    out.append(is_markup && !left.text().is_markup ? escape_html(left.view())
                                                   : std::string(left.view()));
    out.append(is_markup && !right.text().is_markup ? escape_html(right.view())
                                                    : std::string(right.view()));
    return runtime.heap().text(out.take(), is_markup);
}

Value add_sequences(Runtime& runtime, const Value& left, const Value& right) {
    std::vector<Value> items;
    const std::size_t size = left.items().size() + right.items().size();
    runtime.heap().require(size * sizeof(Value));
    items.reserve(size);
    items.insert(items.end(), left.items().begin(), left.items().end());
    items.insert(items.end(), right.items().begin(), right.items().end());
    return left.is_tuple() ? runtime.heap().tuple(std::move(items))
                           : runtime.heap().list(std::move(items));
}

Value repeat(Runtime& runtime, const Value& value, std::int64_t times) {
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
    if (value.is_text()) {
        TextBuilder out(runtime.heap());
        out.fill(count, value.view());
        return runtime.heap().text(out.take(), value.text().is_markup);
    }
    const std::vector<Value>& part = value.items();
    std::vector<Value> items;
    if (!part.empty() && count > 0) {
        if (count > (std::size_t{1} << 40U) / part.size()) runtime.heap().require(SIZE_MAX / 2);
        runtime.heap().require(count * part.size() * sizeof(Value));
        runtime.tick(static_cast<std::int64_t>(count * part.size() / 16));
        items.reserve(count * part.size());
        for (std::size_t each = 0; each < count; ++each) {
            items.insert(items.end(), part.begin(), part.end());
        }
    }
    return value.is_tuple() ? runtime.heap().tuple(std::move(items))
                            : runtime.heap().list(std::move(items));
}

bool is_repeatable(const Value& value) {
    return value.is_text() || value.is_sequence();
}

}  // namespace

Value arithmetic(Runtime& runtime, Operator op, const Value& left, const Value& right) {
    runtime.tick();
    if (op == Operator::kModulo && left.is_text()) return format_percent(runtime, left, right);
    require_defined(left);
    require_defined(right);
    if (left.is_integral() && right.is_integral()) {
        return integer_arithmetic(op, left.integral(), right.integral());
    }
    if (left.is_number() && right.is_number()) {
        return float_arithmetic(op, left.number(), right.number());
    }
    if (op == Operator::kAdd && left.is_text() && right.is_text()) {
        return add_texts(runtime, left, right);
    }
    if (op == Operator::kAdd && left.is_sequence() && right.is_sequence() &&
        left.is_tuple() == right.is_tuple()) {
        return add_sequences(runtime, left, right);
    }
    if (op == Operator::kMultiply && is_repeatable(left) && right.is_integral()) {
        return repeat(runtime, left, right.integral());
    }
    if (op == Operator::kMultiply && is_repeatable(right) && left.is_integral()) {
        return repeat(runtime, right, left.integral());
    }
    fail_operands(op, left, right);
}

Value negate(const Value& value) {
    require_defined(value);
    if (value.is_float()) return Value(-value.number());
    if (!value.is_integral()) {
        fail(fmt::format("bad operand type for unary -: '{}'", type_name(value)));
    }
    std::int64_t result = 0;
    if (__builtin_sub_overflow(std::int64_t{0}, value.integral(), &result)) {
        fail_overflow(Operator::kSubtract);
    }
    return Value(result);
}

Value positive(const Value& value) {
    require_defined(value);
    if (value.is_float()) return value;
    if (!value.is_integral()) {
        fail(fmt::format("bad operand type for unary +: '{}'", type_name(value)));
    }
    return Value(value.integral());
}

}  // namespace pagoda::text::jinja
