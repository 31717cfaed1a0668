#pragma once
// Python's operations on values: truth, text, comparison, arithmetic, access, iteration. Operations
// that may do much work or make values take the Runtime and count against its limits. All throw
// Failure with a message in the words of Python's own where templates and users know them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/runtime.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

// Python's name of the type: "str", "list", "dict", "NoneType".
[[nodiscard]] std::string_view type_name(const Value& value);
[[nodiscard]] bool is_true(const Value& value);
[[nodiscard]] bool is_callable(const Value& value);

// Fails with the reason when the value is undefined.
void require_defined(const Value& value);
[[noreturn]] void fail_undefined(const Value& value);
[[nodiscard]] Value undefined_name(std::string_view name);
[[nodiscard]] Value undefined_hint(std::string hint);
[[nodiscard]] Value undefined_attribute(const Value& object, std::string_view name);

// str(value) and repr(value).
[[nodiscard]] std::string to_string(Runtime& runtime, const Value& value);
[[nodiscard]] Value to_text(Runtime& runtime, const Value& value);  // a text value as it is
void append_string(Runtime& runtime, TextBuilder& out, const Value& value);
void append_repr(Runtime& runtime, TextBuilder& out, const Value& value);
[[nodiscard]] std::string quoted(std::string_view text);  // repr of a string

// Comparison.
[[nodiscard]] bool equal(Meter& meter, const Value& left, const Value& right);
[[nodiscard]] bool less(Meter& meter, const Value& left, const Value& right);
[[nodiscard]] bool compare(Runtime& runtime, Operator op, const Value& left, const Value& right);
[[nodiscard]] bool contains(Runtime& runtime, const Value& container, const Value& item);
[[nodiscard]] std::size_t hash_value(const Value& value);  // fails on unhashable values

// Arithmetic.
[[nodiscard]] Value arithmetic(Runtime& runtime, Operator op, const Value& left,
                               const Value& right);
[[nodiscard]] Value negate(const Value& value);
[[nodiscard]] Value positive(const Value& value);

// Access, in Jinja's order of look-up: x.name tries attributes first, x['name'] items first.
[[nodiscard]] Value get_attribute(Runtime& runtime, const Value& object, std::string_view name);
[[nodiscard]] Value get_item(Runtime& runtime, const Value& object, const Value& key);
// Each bound may be none.
struct SliceBounds {
    Value start, stop, step;
};
[[nodiscard]] Value get_slice(Runtime& runtime, const Value& object, const SliceBounds& bounds);

// Iteration. The items of anything iterable, as a sequence; fails on what is not.
[[nodiscard]] Value to_sequence(Runtime& runtime, const Value& value);
[[nodiscard]] bool is_iterable(const Value& value);
// Null when the value has no length.
[[nodiscard]] std::optional<std::int64_t> length_of(const Value& value);
[[nodiscard]] Value make_list(Runtime& runtime, const Value& iterable);

// Numbers from text, as int() and float() read them; nothing when they don't.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text, int base);
[[nodiscard]] std::optional<double> parse_float(std::string_view text);

}  // namespace pagoda::text::jinja
