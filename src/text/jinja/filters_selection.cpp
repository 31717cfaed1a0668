// Filters that go through a sequence with another filter, a test or an attribute.

#include <fmt/core.h>

#include "text/jinja/attribute_path.h"
#include "text/jinja/failure.h"
#include "text/jinja/native.h"
#include "text/jinja/object.h"
#include "text/jinja/operations.h"

namespace pagoda::text::jinja {

namespace {

// A filter or test that the template names by a string, with the arguments that follow the name.
struct Named {
    const NativeSpec* spec = nullptr;
    CallArguments arguments;
};

Named named_function(const CallArguments& given, std::size_t at, bool is_test) {
    const Value& name = given.positional[at];
    Named named;
    if (name.is_text()) named.spec = is_test ? find_test(name.view()) : find_filter(name.view());
    if (named.spec == nullptr) {
        fail(fmt::format("No {} named {}.", is_test ? "test" : "filter",
                         name.is_text() ? quoted(name.view()) : std::string(type_name(name))));
    }
    named.arguments.positional.assign(
        given.positional.begin() + static_cast<std::ptrdiff_t>(at) + 1, given.positional.end());
    named.arguments.named = given.named;
    return named;
}

Value apply(Runtime& runtime, const Named& named, const Value& item) {
    const Runtime::Level level(runtime);
    runtime.tick();
    return named.spec->function(runtime, item, Bound(*named.spec, named.arguments));
}

Value map_attribute(Runtime& runtime, const Value& subject, const CallArguments& given) {
    Value attribute = Value::none();
    Value otherwise = Value::none();
    for (const auto& [name, value] : given.named) {
        if (name == "attribute") {
            attribute = value;
        } else if (name == "default") {
            otherwise = value;
        } else {
            fail(fmt::format("map() has no parameter '{}'", name));
        }
    }
    AttributePath path(runtime, attribute);
    if (!otherwise.is_none()) path.set_default(otherwise);
    const Value sequence = to_sequence(runtime, subject);
    std::vector<Value> items;
    for (const Value& item : sequence.items()) {
        runtime.tick();
        items.push_back(path.of(runtime, item));
    }
    return make_generator(runtime, std::move(items), "map");
}

bool has_attribute(const CallArguments& given) {
    for (const auto& [name, value] : given.named) {
        if (name == "attribute") return true;
    }
    return false;
}

Value map(Runtime& runtime, const Value& subject, const Bound& arguments) {
    const CallArguments& given = arguments.all();
    if (!is_true(subject)) return make_generator(runtime, {}, "map");
    if (given.positional.empty() && has_attribute(given)) {
        return map_attribute(runtime, subject, given);
    }
    if (given.positional.empty()) fail("map() needs the name of a filter or attribute=");
    const Named named = named_function(given, 0, false);
    const Value sequence = to_sequence(runtime, subject);
    std::vector<Value> items;
    for (const Value& item : sequence.items()) items.push_back(apply(runtime, named, item));
    return make_generator(runtime, std::move(items), "map");
}

// select, reject and, by an attribute, selectattr and rejectattr.
template <bool kKeepsTrue, bool kByAttribute>
Value select(Runtime& runtime, const Value& subject, const Bound& arguments) {
    const CallArguments& given = arguments.all();
    if (!is_true(subject)) return make_generator(runtime, {}, "select_or_reject");
    AttributePath path;
    std::size_t at = 0;
    if (kByAttribute) {
        if (given.positional.empty()) fail("Missing parameter for attribute name");
        path = AttributePath(runtime, given.positional[at++]);
    }
    Named named;
    if (at < given.positional.size()) named = named_function(given, at, true);
    const Value sequence = to_sequence(runtime, subject);
    std::vector<Value> items;
    for (const Value& item : sequence.items()) {
        runtime.tick();
        const Value examined = path.of(runtime, item);
        const bool holds =
            is_true(named.spec == nullptr ? examined : apply(runtime, named, examined));
        if (holds == kKeepsTrue) items.push_back(item);
    }
    return make_generator(runtime, std::move(items), "select_or_reject");
}

Value attr(Runtime& runtime, const Value& subject, const Bound& arguments) {
    const std::string_view name = arguments.view(0, "");
    // Attributes only: unlike x.name, a dictionary's items do not count.
    if (subject.is_dict() && find_method(subject, name) == nullptr &&
        !is_forbidden_attribute(subject, name)) {
        return undefined_attribute(subject, name);
    }
    return get_attribute(runtime, subject, name);
}

Value default_value(Runtime& runtime, const Value& subject, const Bound& arguments) {
    const bool replaces =
        subject.is_undefined() || (arguments.boolean(1, false) && !is_true(subject));
    if (!replaces) return subject;
    return arguments.has(0) ? arguments.at(0) : runtime.heap().text("");
}

constexpr NativeSpec kSelectionFilters[] = {
    {"map", "*", 0, map},
    {"select", "*", 0, select<true, false>},
    {"reject", "*", 0, select<false, false>},
    {"selectattr", "*", 0, select<true, true>},
    {"rejectattr", "*", 0, select<false, true>},
    {"attr", "name", 1, attr},
    {"default", "default_value boolean", 0, default_value},
    {"d", "default_value boolean", 0, default_value},
};

}  // namespace

std::span<const NativeSpec> selection_filters() {
    return kSelectionFilters;
}

}  // namespace pagoda::text::jinja
