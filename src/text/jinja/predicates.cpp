// Jinja's tests: {{ x is defined }}.

#include <fmt/core.h>

#include "text/jinja/failure.h"
#include "text/jinja/native.h"
#include "text/jinja/operations.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

namespace {

template <Value::Kind kKind>
Value is_kind(Runtime&, const Value& subject, const Bound&) {
    return Value(subject.kind() == kKind);
}

Value is_defined(Runtime&, const Value& subject, const Bound&) {
    return Value(!subject.is_undefined());
}

Value is_number(Runtime&, const Value& subject, const Bound&) {
    return Value(subject.is_number());
}

Value is_sequence(Runtime&, const Value& subject, const Bound&) {
    const bool is_range = subject.is_object() && type_name(subject) == "range";
    return Value(subject.is_text() || subject.is_sequence() || subject.is_dict() ||
                 subject.is_undefined() || is_range);
}

Value is_iterable_value(Runtime&, const Value& subject, const Bound&) {
    return Value(is_iterable(subject));
}

Value is_callable_value(Runtime&, const Value& subject, const Bound&) {
    return Value(is_callable(subject));
}

template <bool kWanted>
Value is_boolean(Runtime&, const Value& subject, const Bound&) {
    return Value(subject.is_bool() && subject.boolean() == kWanted);
}

Value modulo(Runtime& runtime, const Value& left, const Value& right) {
    return arithmetic(runtime, Operator::kModulo, left, right);
}

template <int kRemainder>
Value has_parity(Runtime& runtime, const Value& subject, const Bound&) {
    const Value rest = modulo(runtime, subject, Value(std::int64_t{2}));
    return Value(equal(runtime.meter(), rest, Value(std::int64_t{kRemainder})));
}

Value is_divisible(Runtime& runtime, const Value& subject, const Bound& arguments) {
    const Value rest = modulo(runtime, subject, arguments.at(0));
    return Value(equal(runtime.meter(), rest, Value(std::int64_t{0})));
}

template <Operator kOperator>
Value compares(Runtime& runtime, const Value& subject, const Bound& arguments) {
    return Value(compare(runtime, kOperator, subject, arguments.at(0)));
}

Value is_same(Runtime& runtime, const Value& subject, const Bound& arguments) {
    const Value& other = arguments.at(0);
    if (subject.kind() != other.kind()) return Value(false);
    if (subject.is_sequence() || subject.is_dict() || subject.is_object()) {
        return Value(subject.identity() == other.identity());
    }
    return Value(equal(runtime.meter(), subject, other));
}

template <bool kWantsUpper>
Value is_cased(Runtime& runtime, const Value& subject, const Bound&) {
    bool has_cased = false;
    const std::string owned = to_string(runtime, subject);
    std::string_view text = owned;
    while (!text.empty()) {
        const CodePoint point = first_code_point(text);
        text.remove_prefix(point.bytes);
        const bool lower = jinja::is_lower(point.code);
        const bool upper = jinja::is_upper(point.code);
        if (is_title(point.code) || (kWantsUpper ? lower : upper)) return Value(false);
        has_cased = has_cased || (kWantsUpper ? upper : lower);
    }
    return Value(has_cased);
}

Value is_escaped(Runtime&, const Value& subject, const Bound&) {
    return Value(subject.is_text() && subject.text().is_markup);
}

Value is_filter(Runtime&, const Value& subject, const Bound&) {
    return Value(subject.is_text() && find_filter(subject.view()) != nullptr);
}

Value is_test(Runtime&, const Value& subject, const Bound&) {
    return Value(subject.is_text() && find_test(subject.view()) != nullptr);
}

constexpr NativeSpec kTests[] = {
    {"defined", "", 0, is_defined},
    {"undefined", "", 0, is_kind<Value::Kind::kUndefined>},
    {"none", "", 0, is_kind<Value::Kind::kNone>},
    {"string", "", 0, is_kind<Value::Kind::kText>},
    {"mapping", "", 0, is_kind<Value::Kind::kDict>},
    {"boolean", "", 0, is_kind<Value::Kind::kBool>},
    {"integer", "", 0, is_kind<Value::Kind::kInt>},
    {"float", "", 0, is_kind<Value::Kind::kFloat>},
    {"number", "", 0, is_number},
    {"sequence", "", 0, is_sequence},
    {"iterable", "", 0, is_iterable_value},
    {"callable", "", 0, is_callable_value},
    {"true", "", 0, is_boolean<true>},
    {"false", "", 0, is_boolean<false>},
    {"odd", "", 0, has_parity<1>},
    {"even", "", 0, has_parity<0>},
    {"divisibleby", "num", 1, is_divisible},
    {"eq", "other", 1, compares<Operator::kEqual>},
    {"equalto", "other", 1, compares<Operator::kEqual>},
    {"==", "other", 1, compares<Operator::kEqual>},
    {"ne", "other", 1, compares<Operator::kNotEqual>},
    {"!=", "other", 1, compares<Operator::kNotEqual>},
    {"gt", "other", 1, compares<Operator::kGreater>},
    {"greaterthan", "other", 1, compares<Operator::kGreater>},
    {">", "other", 1, compares<Operator::kGreater>},
    {"ge", "other", 1, compares<Operator::kGreaterEqual>},
    {">=", "other", 1, compares<Operator::kGreaterEqual>},
    {"lt", "other", 1, compares<Operator::kLess>},
    {"lessthan", "other", 1, compares<Operator::kLess>},
    {"<", "other", 1, compares<Operator::kLess>},
    {"le", "other", 1, compares<Operator::kLessEqual>},
    {"<=", "other", 1, compares<Operator::kLessEqual>},
    {"in", "seq", 1, compares<Operator::kIn>},
    {"sameas", "other", 1, is_same},
    {"lower", "", 0, is_cased<false>},
    {"upper", "", 0, is_cased<true>},
    {"escaped", "", 0, is_escaped},
    {"filter", "", 0, is_filter},
    {"test", "", 0, is_test},
};

}  // namespace

std::span<const NativeSpec> test_functions() {
    return kTests;
}

}  // namespace pagoda::text::jinja
