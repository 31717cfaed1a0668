#include "text/jinja/native.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include <fmt/core.h>

#include "text/jinja/failure.h"
#include "text/jinja/operations.h"

namespace pagoda::text::jinja {

namespace {

std::string_view next_word(std::string_view& words) {
    const std::size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    words.remove_prefix(std::min(end + 1, words.size()));
    return word;
}

std::size_t parameter_index(std::string_view parameters, std::string_view name) {
    for (std::size_t index = 0; !parameters.empty(); ++index) {
        if (next_word(parameters) == name) return index;
    }
    return Bound::kMaxParameters;
}

std::size_t count_parameters(std::string_view parameters) {
    std::size_t count = 0;
    for (; !parameters.empty(); ++count) next_word(parameters);
    return count;
}

std::string_view parameter_name(std::string_view parameters, std::size_t index) {
    for (; index > 0; --index) next_word(parameters);
    return next_word(parameters);
}

const NativeSpec* find_in(std::span<const NativeSpec> table, std::string_view name) {
    const auto found = std::find_if(table.begin(), table.end(),
                                    [name](const NativeSpec& row) { return row.name == name; });
    return found == table.end() ? nullptr : &*found;
}

const NativeSpec* find_in_all(std::initializer_list<std::span<const NativeSpec>> tables,
                              std::string_view name) {
    for (const auto table : tables) {
        if (const NativeSpec* found = find_in(table, name)) return found;
    }
    return nullptr;
}

template <std::size_t kCount>
bool contains(const std::array<std::string_view, kCount>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Bound::Bound(const NativeSpec& spec, const CallArguments& arguments)
    : spec_(spec), arguments_(arguments) {
    if (spec.parameters == "*") return;
    const std::size_t limit = count_parameters(spec.parameters);
    if (arguments.positional.size() > limit) {
        fail(fmt::format("{}() takes at most {} arguments, got {}", spec.name, limit,
                         arguments.positional.size()));
    }
    for (std::size_t at = 0; at < arguments.positional.size(); ++at) {
        values_[at] = &arguments.positional[at];
    }
    for (const auto& [name, value] : arguments.named) {
        const std::size_t at = parameter_index(spec.parameters, name);
        if (at >= limit) fail(fmt::format("{}() has no parameter '{}'", spec.name, name));
        if (values_[at] != nullptr) {
            fail(fmt::format("{}() got several values for '{}'", spec.name, name));
        }
        values_[at] = &value;
    }
    for (std::size_t at = 0; at < static_cast<std::size_t>(spec.required); ++at) {
        if (values_[at] == nullptr) {
            fail(fmt::format("{}() needs the argument '{}'", spec.name,
                             parameter_name(spec.parameters, at)));
        }
    }
}

std::string_view Bound::function_name() const {
    return spec_.name;
}

void Bound::fail_type(std::size_t parameter, std::string_view expected) const {
    fail(fmt::format("{}() needs {} for '{}', got {}", spec_.name, expected,
                     parameter_name(spec_.parameters, parameter), type_name(at(parameter))));
}

std::int64_t Bound::integer(std::size_t parameter, std::int64_t otherwise) const {
    if (!has(parameter)) return otherwise;
    if (!at(parameter).is_integral()) fail_type(parameter, "an integer");
    return at(parameter).integral();
}

bool Bound::boolean(std::size_t parameter, bool otherwise) const {
    return has(parameter) ? is_true(at(parameter)) : otherwise;
}

std::string_view Bound::view(std::size_t parameter, std::string_view otherwise) const {
    if (!has(parameter)) return otherwise;
    if (!at(parameter).is_text()) fail_type(parameter, "a string");
    return at(parameter).view();
}

const NativeSpec* find_filter(std::string_view name) {
    return find_in_all({text_filters(), layout_filters(), sequence_filters(), selection_filters(),
                        number_filters(), markup_filters()},
                       name);
}

const NativeSpec* find_test(std::string_view name) {
    return find_in(test_functions(), name);
}

const NativeSpec* find_global(std::string_view name) {
    return find_in(global_functions(), name);
}

const NativeSpec* find_method(const Value& object, std::string_view name) {
    if (object.is_text()) return find_in_all({text_methods(), text_search_methods()}, name);
    if (object.is_sequence()) return find_in(sequence_methods(), name);
    if (object.is_dict()) return find_in(dict_methods(), name);
    return nullptr;
}

bool is_refused_filter(std::string_view name) {
    static constexpr std::array<std::string_view, 2> kRefused{"random", "urlize"};
    return contains(kRefused, name);
}

bool is_forbidden_attribute(const Value& object, std::string_view name) {
    static constexpr std::array<std::string_view, 8> kOfLists{
        "append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"};
    static constexpr std::array<std::string_view, 5> kOfDicts{"clear", "pop", "popitem",
                                                              "setdefault", "update"};
    if (name.starts_with("__") && name.ends_with("__") && name.size() > 4) return true;
    if (object.is_list()) return contains(kOfLists, name);
    if (object.is_dict()) return contains(kOfDicts, name);
    return false;
}

}  // namespace pagoda::text::jinja
