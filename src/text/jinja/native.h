#pragma once
// Native functions: the filters, tests, methods and globals that templates call, each one row of a
// constant table with its parameters in Python's order. Tables are immutable and thread-safe.

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace pagoda::text::jinja {

class Runtime;

struct CallArguments {
    std::vector<Value> positional;
    std::vector<std::pair<std::string, Value>> named;
};

struct NativeSpec;

// Arguments by parameter. Lives as long as the CallArguments it was made from.
class Bound final {
  public:
    static constexpr std::size_t kMaxParameters = 8;

    // Fails on too many, unknown, doubled or missing arguments, naming the function.
    Bound(const NativeSpec& spec, const CallArguments& arguments);

    [[nodiscard]] bool has(std::size_t parameter) const { return find(parameter) != nullptr; }
    // Null when it was not given.
    [[nodiscard]] const Value* find(std::size_t parameter) const { return values_[parameter]; }
    // REQUIRES: has(parameter).
    [[nodiscard]] const Value& at(std::size_t parameter) const { return *values_[parameter]; }
    // The value as that type; fails with the function's and the parameter's name when it is
    // another.
    [[nodiscard]] std::int64_t integer(std::size_t parameter, std::int64_t otherwise) const;
    [[nodiscard]] bool boolean(std::size_t parameter, bool otherwise) const;
    [[nodiscard]] std::string_view view(std::size_t parameter, std::string_view otherwise) const;
    // Not given, or none.
    [[nodiscard]] bool is_none(std::size_t parameter) const {
        return !has(parameter) || at(parameter).is_none();
    }
    // All arguments as they came, for functions that take any.
    [[nodiscard]] const CallArguments& all() const { return arguments_; }
    [[nodiscard]] std::string_view function_name() const;

  private:
    [[noreturn]] void fail_type(std::size_t parameter, std::string_view expected) const;

    const NativeSpec& spec_;
    const CallArguments& arguments_;
    const Value* values_[kMaxParameters] = {};
};

struct NativeSpec {
    std::string_view name;
    // Names of the parameters after the subject, separated by spaces; "*" takes anything.
    std::string_view parameters;
    int required = 0;
    Value (*function)(Runtime& runtime, const Value& subject, const Bound& arguments) = nullptr;
};

// Null when there is no such thing.
[[nodiscard]] const NativeSpec* find_filter(std::string_view name);
[[nodiscard]] const NativeSpec* find_test(std::string_view name);
[[nodiscard]] const NativeSpec* find_global(std::string_view name);
// A method of a text, list, tuple or dictionary.
[[nodiscard]] const NativeSpec* find_method(const Value& object, std::string_view name);
// Known to Jinja, and deliberately not offered (random results, HTML links).
[[nodiscard]] bool is_refused_filter(std::string_view name);
// A method that would change a container, which the sandbox forbids.
[[nodiscard]] bool is_forbidden_attribute(const Value& object, std::string_view name);

// The tables, each in the file that defines its functions.
[[nodiscard]] std::span<const NativeSpec> text_filters();
[[nodiscard]] std::span<const NativeSpec> layout_filters();
[[nodiscard]] std::span<const NativeSpec> sequence_filters();
[[nodiscard]] std::span<const NativeSpec> selection_filters();
[[nodiscard]] std::span<const NativeSpec> number_filters();
[[nodiscard]] std::span<const NativeSpec> markup_filters();
[[nodiscard]] std::span<const NativeSpec> test_functions();
[[nodiscard]] std::span<const NativeSpec> global_functions();
[[nodiscard]] std::span<const NativeSpec> text_methods();
[[nodiscard]] std::span<const NativeSpec> text_search_methods();
[[nodiscard]] std::span<const NativeSpec> sequence_methods();
[[nodiscard]] std::span<const NativeSpec> dict_methods();

}  // namespace pagoda::text::jinja
