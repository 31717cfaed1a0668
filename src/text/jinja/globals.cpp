// The functions that every template finds: range, dict, namespace, cycler, joiner, and those that
// Hugging Face adds: raise_exception and strftime_now.

#include <fmt/core.h>

#include "text/jinja/failure.h"
#include "text/jinja/native.h"
#include "text/jinja/object.h"
#include "text/jinja/operations.h"
#include "text/jinja/strftime.h"

namespace pagoda::text::jinja {

namespace {

std::int64_t range_argument(const Value& value) {
    require_defined(value);
    if (!value.is_integral()) {
        fail(fmt::format("'{}' object cannot be interpreted as an integer", type_name(value)));
    }
    return value.integral();
}

Value make_range(Runtime&, const Value&, const Bound& arguments) {
    const auto& given = arguments.all().positional;
    if (given.empty() || given.size() > 3 || !arguments.all().named.empty()) {
        fail("range() takes from 1 to 3 positional arguments");
    }
    const std::int64_t first = range_argument(given[0]);
    if (given.size() == 1) return make_object(std::make_shared<Range>(0, first, 1));
    const std::int64_t step = given.size() == 3 ? range_argument(given[2]) : 1;
    if (step == 0) fail("range() arg 3 must not be zero");
    return make_object(std::make_shared<Range>(first, range_argument(given[1]), step));
}

// The pairs of a mapping, or of a sequence of pairs.
template <class Visit>
void for_each_pair(Runtime& runtime, const Value& source, const Visit& visit) {
    if (source.is_dict()) {
        for (const auto& [key, value] : source.dict().entries()) visit(key, value);
        return;
    }
    const Value sequence = to_sequence(runtime, source);
    for (const Value& item : sequence.items()) {
        const Value pair = to_sequence(runtime, item);
        if (pair.items().size() != 2) fail("a dictionary is made from pairs of key and value");
        visit(pair.items()[0], pair.items()[1]);
    }
}

Value make_dict(Runtime& runtime, const Value&, const Bound& arguments) {
    const auto& given = arguments.all();
    if (given.positional.size() > 1) fail("dict() takes at most 1 positional argument");
    std::size_t size = given.named.size();
    if (!given.positional.empty()) {
        size += static_cast<std::size_t>(length_of(given.positional[0]).value_or(0));
    }
    auto dict = runtime.heap().new_dict(size);
    if (!given.positional.empty()) {
        for_each_pair(runtime, given.positional[0], [&](const Value& key, const Value& value) {
            dict->set(runtime.meter(), key, value);
        });
    }
    for (const auto& [name, value] : given.named) {
        dict->set(runtime.meter(), runtime.heap().text(name), value);
    }
    return runtime.heap().dict(std::move(dict));
}

Value make_namespace(Runtime& runtime, const Value&, const Bound& arguments) {
    const auto& given = arguments.all();
    if (given.positional.size() > 1) fail("namespace() takes at most 1 positional argument");
    auto made = std::make_shared<Namespace>(runtime.heap());
    if (!given.positional.empty()) {
        for_each_pair(runtime, given.positional[0], [&](const Value& key, const Value& value) {
            if (!key.is_text()) fail("the names of a namespace must be strings");
            made->set(key.view(), value);
        });
    }
    for (const auto& [name, value] : given.named) made->set(name, value);
    return make_object(std::move(made));
}

Value make_cycler(Runtime& runtime, const Value&, const Bound& arguments) {
    if (arguments.all().positional.empty()) fail("at least one item has to be provided");
    return make_object(std::make_shared<Cycler>(runtime.heap().tuple(arguments.all().positional)));
}

Value make_joiner(Runtime& runtime, const Value&, const Bound& arguments) {
    return make_object(
        std::make_shared<Joiner>(arguments.has(0) ? arguments.at(0) : runtime.heap().text(", ")));
}

Value raise_exception(Runtime& runtime, const Value&, const Bound& arguments) {
    throw Failure::raised(to_string(runtime, arguments.at(0)));
}

Value strftime_now(Runtime& runtime, const Value&, const Bound& arguments) {
    return runtime.heap().text(
        format_time(runtime.heap(), runtime.date_now(), arguments.view(0, "")));
}

Value lipsum(Runtime&, const Value&, const Bound&) {
    throw Failure(base::ErrorCode::kUnsupported,
                  "lipsum() is not supported: a prompt must not be random");
}

constexpr NativeSpec kGlobals[] = {
    {"range", "*", 0, make_range},
    {"dict", "*", 0, make_dict},
    {"namespace", "*", 0, make_namespace},
    {"cycler", "*", 0, make_cycler},
    {"joiner", "sep", 0, make_joiner},
    {"raise_exception", "message", 1, raise_exception},
    {"strftime_now", "format", 1, strftime_now},
    {"lipsum", "*", 0, lipsum},
};

}  // namespace

std::span<const NativeSpec> global_functions() {
    return kGlobals;
}

}  // namespace pagoda::text::jinja
