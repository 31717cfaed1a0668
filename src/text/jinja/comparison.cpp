#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <string.h>  // NOLINT: memmem is no part of <cstring>

#include "text/jinja/failure.h"
#include "text/jinja/object.h"
#include "text/jinja/operations.h"

namespace pagoda::text::jinja {

namespace {

bool equal_items(Meter& meter, const Value& left, const Value& right) {
    if (left.is_tuple() != right.is_tuple() || left.items().size() != right.items().size()) {
        return false;
    }
    for (std::size_t at = 0; at < left.items().size(); ++at) {
        if (!equal(meter, left.items()[at], right.items()[at])) return false;
    }
    return true;
}

bool equal_entries(Meter& meter, const Dict& left, const Dict& right) {
    if (left.size() != right.size()) return false;
    for (const auto& [key, value] : left.entries()) {
        const Value* const other = right.find(meter, key);
        if (other == nullptr || !equal(meter, value, *other)) return false;
    }
    return true;
}

[[noreturn]] void fail_order(std::string_view op, const Value& left, const Value& right) {
    fail(fmt::format("'{}' not supported between instances of '{}' and '{}'", op, type_name(left),
                     type_name(right)));
}

bool equal_numbers(const Value& left, const Value& right) {
    if (left.is_integral() && right.is_integral()) return left.integral() == right.integral();
    return left.number() == right.number();
}

bool less_as(Meter& meter, std::string_view op, const Value& left, const Value& right);

bool less_items(Meter& meter, std::string_view op, const Value& left, const Value& right) {
    const std::size_t common = std::min(left.items().size(), right.items().size());
    for (std::size_t at = 0; at < common; ++at) {
        if (!equal(meter, left.items()[at], right.items()[at])) {
            return less_as(meter, op, left.items()[at], right.items()[at]);
        }
    }
    return left.items().size() < right.items().size();
}

bool less_as(Meter& meter, std::string_view op, const Value& left, const Value& right) {
    meter.tick();
    require_defined(left);
    require_defined(right);
    if (left.is_integral() && right.is_integral()) return left.integral() < right.integral();
    if (left.is_number() && right.is_number()) return left.number() < right.number();
    if (left.is_text() && right.is_text()) {
        meter.tick_bytes(std::min(left.view().size(), right.view().size()));
        return left.view() < right.view();  // the order of UTF-8 is the order of code points
    }
    if (left.is_sequence() && right.is_sequence() && left.is_tuple() == right.is_tuple()) {
        return less_items(meter, op, left, right);
    }
    fail_order(op, left, right);
}

}  // namespace

bool equal(Meter& meter, const Value& left, const Value& right) {
    meter.tick();
    if (left.is_number() && right.is_number()) return equal_numbers(left, right);
    if (left.kind() != right.kind()) return false;
    if (left.identity() != nullptr && left.identity() == right.identity()) return true;
    switch (left.kind()) {
        case Value::Kind::kText:
            meter.tick_bytes(std::min(left.view().size(), right.view().size()));
            return left.view() == right.view();
        case Value::Kind::kSequence:
            return equal_items(meter, left, right);
        case Value::Kind::kDict:
            return equal_entries(meter, left.dict(), right.dict());
        case Value::Kind::kObject:
            return left.object().equals(meter, right.object());
        default:
            return true;  // undefined or none, both
    }
}

bool less(Meter& meter, const Value& left, const Value& right) {
    return less_as(meter, "<", left, right);
}

bool compare(Runtime& runtime, Operator op, const Value& left, const Value& right) {
    Meter& meter = runtime.meter();
    // NaN compares false with everything, so "not less" will not do for floats.
    const bool is_unordered = left.is_number() && right.is_number() &&
                              (std::isnan(left.number()) || std::isnan(right.number()));
    switch (op) {
        case Operator::kEqual:
            return equal(meter, left, right);
        case Operator::kNotEqual:
            return !equal(meter, left, right);
        case Operator::kLess:
            return less_as(meter, "<", left, right);
        case Operator::kLessEqual:
            return !is_unordered && !less_as(meter, "<=", right, left);
        case Operator::kGreater:
            return less_as(meter, ">", right, left);
        case Operator::kGreaterEqual:
            return !is_unordered && !less_as(meter, ">=", left, right);
        case Operator::kIn:
            return contains(runtime, right, left);
        default:
            return !contains(runtime, right, left);
    }
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
    Meter& meter = runtime.meter();
    if (container.is_text()) {
        if (item.is_undefined()) fail_undefined(item);
        if (!item.is_text()) {
            fail(fmt::format("'in <string>' requires string as left operand, not {}",
                             type_name(item)));
        }
        const std::string_view text = container.view(), part = item.view();
        meter.tick_bytes(text.size());
        return part.empty() ||
               memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
    }
    if (container.is_dict()) return container.dict().find(meter, item) != nullptr;
    if (container.is_object()) {
        if (const auto* range = dynamic_cast<const Range*>(&container.object())) {
            if (item.is_number() && std::floor(item.number()) == item.number() &&
                std::fabs(item.number()) < 9e18) {
                return range->contains(item.is_float() ? static_cast<std::int64_t>(item.number())
                                                       : item.integral());
            }
            return false;
        }
    }
    if (!is_iterable(container)) {
        fail(fmt::format("argument of type '{}' is not iterable", type_name(container)));
    }
    const Value sequence = to_sequence(runtime, container);
    return std::any_of(sequence.items().begin(), sequence.items().end(),
                       [&](const Value& each) { return equal(meter, each, item); });
}

std::size_t hash_value(const Value& value) {
    switch (value.kind()) {
        case Value::Kind::kBool:
        case Value::Kind::kInt:
            return std::hash<double>{}(value.number());
        case Value::Kind::kFloat:
            return std::hash<double>{}(value.number());
        case Value::Kind::kText:
            return std::hash<std::string_view>{}(value.view());
        case Value::Kind::kSequence: {
            if (!value.is_tuple()) fail("unhashable type: 'list'");
            // Only the first level counts: nested tuples may share parts without end.
            std::size_t hash = value.items().size();
            for (const Value& item : value.items()) {
                if (item.is_list()) fail("unhashable type: 'list'");
                hash = hash * 1000003 + (item.is_sequence() ? 1 : hash_value(item));
            }
            return hash;
        }
        case Value::Kind::kDict:
            fail("unhashable type: 'dict'");
        case Value::Kind::kObject:
            return std::hash<const void*>{}(value.identity());
        default:
            return 0;
    }
}

}  // namespace pagoda::text::jinja
