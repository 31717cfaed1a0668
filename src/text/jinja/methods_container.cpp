// Methods of list, tuple and dict. Those that would change one are forbidden, see native.cpp.

#include <algorithm>

#include <fmt/core.h>

#include "text/jinja/failure.h"
#include "text/jinja/native.h"
#include "text/jinja/object.h"
#include "text/jinja/operations.h"

namespace pagoda::text::jinja {

namespace {

Value count(Runtime& runtime, const Value& self, const Bound& arguments) {
    std::int64_t occurrences = 0;
    for (const Value& item : self.items()) {
        if (equal(runtime.meter(), item, arguments.at(0))) ++occurrences;
    }
    return Value(occurrences);
}

Value index(Runtime& runtime, const Value& self, const Bound& arguments) {
    const auto size = static_cast<std::int64_t>(self.items().size());
    const auto resolve = [&](std::size_t parameter, std::int64_t otherwise) {
        const std::int64_t place = arguments.integer(parameter, otherwise);
        return std::clamp<std::int64_t>(place < 0 ? place + size : place, 0, size);
    };
    const std::int64_t stop = resolve(2, size);
    for (std::int64_t at = resolve(1, 0); at < stop; ++at) {
        if (equal(runtime.meter(), self.items()[static_cast<std::size_t>(at)], arguments.at(0))) {
            return Value(at);
        }
    }
    fail("the value is not in the list");
}

Value copy(Runtime&, const Value& self, const Bound&) {
    return self;
}

template <DictView::Part kPart>
Value view(Runtime&, const Value& self, const Bound&) {
    return make_object(std::make_shared<DictView>(self, kPart));
}

Value get(Runtime& runtime, const Value& self, const Bound& arguments) {
    if (const Value* found = self.dict().find(runtime.meter(), arguments.at(0))) return *found;
    return arguments.has(1) ? arguments.at(1) : Value::none();
}

constexpr NativeSpec kSequenceMethods[] = {
    {"count", "value", 1, count},
    {"index", "value start stop", 1, index},
    {"copy", "", 0, copy},
};

constexpr NativeSpec kDictMethods[] = {
    {"items", "", 0, view<DictView::Part::kItems>},
    {"keys", "", 0, view<DictView::Part::kKeys>},
    {"values", "", 0, view<DictView::Part::kValues>},
    {"get", "key default", 1, get},
    {"copy", "", 0, copy},
};

}  // namespace

std::span<const NativeSpec> sequence_methods() {
    return kSequenceMethods;
}
std::span<const NativeSpec> dict_methods() {
    return kDictMethods;
}

}  // namespace pagoda::text::jinja
