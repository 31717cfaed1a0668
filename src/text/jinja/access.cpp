#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "text/jinja/failure.h"
#include "text/jinja/object.h"
#include "text/jinja/operations.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

namespace {

// An attribute in Python's sense: methods, and what objects offer. Nothing when there is none.
std::optional<Value> find_attribute(Runtime& runtime, const Value& object, std::string_view name) {
    if (is_forbidden_attribute(object, name)) {
        UndefinedOrigin origin{{}, std::string(type_name(object)), std::string(name), false, true};
        return Value(Undefined{std::make_shared<UndefinedOrigin>(std::move(origin))});
    }
    if (object.is_object()) {
        const Value::ObjectPtr kept = object.object_ptr();
        return kept->attribute(runtime, name);
    }
    if (object.is_sequence() && object.sequence().is_group) {
        if (name == "grouper") return object.items()[0];
        if (name == "list") return object.items()[1];
    }
    if (const NativeSpec* method = find_method(object, name)) {
        return make_object(std::make_shared<NativeFunction>(*method, object));
    }
    return {};
}

// The place of an index, counted from the end when it is negative; nothing when it is outside.
std::optional<std::size_t> resolve_index(std::int64_t index, std::size_t size) {
    const auto signed_size = static_cast<std::int64_t>(size);
    if (index < 0) index += signed_size;
    if (index < 0 || index >= signed_size) return {};
    return static_cast<std::size_t>(index);
}

std::optional<Value> character_at(Runtime& runtime, const Text& text, std::int64_t index) {
    const auto place = resolve_index(index, text.length);
    if (!place) return {};
    const std::string_view bytes = text.bytes;
    if (text.is_ascii()) return runtime.heap().text(std::string(1, bytes[*place]));
    runtime.meter().tick_bytes(bytes.size());
    const std::size_t begin = offset_of(bytes, *place);
    return runtime.heap().text(bytes.substr(begin, first_code_point(bytes.substr(begin)).bytes));
}

// An item in Python's sense; nothing where Python raises TypeError or LookupError.
std::optional<Value> find_item(Runtime& runtime, const Value& object, const Value& key) {
    if (object.is_dict()) {
        if (key.is_list() || key.is_dict()) return {};
        const Value* const value = key.is_text() ? object.dict().find(key.view())
                                                 : object.dict().find(runtime.meter(), key);
        return value == nullptr ? std::nullopt : std::optional<Value>(*value);
    }
    if (!key.is_integral()) return {};
    if (object.is_sequence()) {
        const auto place = resolve_index(key.integral(), object.items().size());
        return place ? std::optional<Value>(object.items()[*place]) : std::nullopt;
    }
    if (object.is_text()) return character_at(runtime, object.text(), key.integral());
    if (object.is_object()) {
        if (const auto* range = dynamic_cast<const Range*>(&object.object())) {
            const auto place =
                resolve_index(key.integral(), static_cast<std::size_t>(*range->length()));
            if (place) return Value(range->at(static_cast<std::int64_t>(*place)));
        }
    }
    return {};
}

std::int64_t slice_bound(const Value& bound, std::string_view what) {
    if (!bound.is_integral()) {
        require_defined(bound);
        fail(fmt::format("the {} of a slice must be an integer or none, got {}", what,
                         type_name(bound)));
    }
    return bound.integral();
}

struct SliceRange {
    std::int64_t start, stop, step, count;
};

// Python's rules: bounds outside are clipped, negative ones count from the end.
SliceRange resolve_slice(const SliceBounds& bounds, std::size_t length) {
    const auto size = static_cast<std::int64_t>(length);
    const std::int64_t step = bounds.step.is_none() ? 1 : slice_bound(bounds.step, "step");
    if (step == 0) fail("slice step cannot be zero");
    const std::int64_t lowest = step < 0 ? -1 : 0;
    const std::int64_t highest = step < 0 ? size - 1 : size;
    const auto resolve = [&](const Value& bound, std::string_view what, std::int64_t otherwise) {
        if (bound.is_none()) return otherwise;
        std::int64_t place = slice_bound(bound, what);
        if (place < 0) place = place < -size ? lowest : place + size;
        return std::clamp(place, lowest, highest);
    };
    const std::int64_t start = resolve(bounds.start, "start", step < 0 ? highest : lowest);
    const std::int64_t stop = resolve(bounds.stop, "stop", step < 0 ? lowest : highest);
    std::int64_t count = 0;
    if (step > 0 && stop > start) count = (stop - start - 1) / step + 1;
    if (step < 0 && stop < start) {
        const std::int64_t stride = step == std::numeric_limits<std::int64_t>::min()
                                        ? std::numeric_limits<std::int64_t>::max()
                                        : -step;
        count = (start - stop - 1) / stride + 1;
    }
    return {start, stop, step, count};
}

Value slice_text(Runtime& runtime, const Value& object, const SliceBounds& bounds) {
    const Text& text = object.text();
    const SliceRange range = resolve_slice(bounds, text.length);
    const std::string_view bytes = text.bytes;
    runtime.meter().tick_bytes(bytes.size());
    if (range.step == 1) {
        const auto start = static_cast<std::size_t>(range.start);
        const auto count = static_cast<std::size_t>(range.count);
        if (text.is_ascii()) {
            return runtime.heap().text(std::string(bytes.substr(start, count)), text.is_markup);
        }
        const std::size_t begin = offset_of(bytes, start);
        const std::size_t end = begin + offset_of(bytes.substr(begin), count);
        return runtime.heap().text(std::string(bytes.substr(begin, end - begin)), text.is_markup);
    }
    std::vector<std::size_t> offsets;  // of each character, and of the end
    runtime.heap().require(text.length * sizeof(std::size_t));
    offsets.reserve(text.length + 1);
    for (std::size_t at = 0; at < bytes.size(); at += first_code_point(bytes.substr(at)).bytes) {
        offsets.push_back(at);
    }
    offsets.push_back(bytes.size());
    TextBuilder out(runtime.heap());
    for (std::int64_t each = 0; each < range.count; ++each) {
        const auto place = static_cast<std::size_t>(range.start + each * range.step);
        out.append(bytes.substr(offsets[place], offsets[place + 1] - offsets[place]));
    }
    return runtime.heap().text(out.take(), text.is_markup);
}

Value characters_of(Runtime& runtime, std::string_view text) {
    std::vector<Value> items;
    runtime.heap().require(count_code_points(text) * sizeof(Value));
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t bytes = first_code_point(text.substr(at)).bytes;
        items.push_back(runtime.heap().text(text.substr(at, bytes)));
        at += bytes;
    }
    return runtime.heap().list(std::move(items));
}

}  // namespace

Value get_attribute(Runtime& runtime, const Value& object, std::string_view name) {
    if (object.is_undefined()) fail_undefined(object);
    if (auto attribute = find_attribute(runtime, object, name)) return *std::move(attribute);
    if (object.is_dict()) {
        if (const Value* value = object.dict().find(name)) return *value;
    }
    return undefined_attribute(object, name);
}

Value get_item(Runtime& runtime, const Value& object, const Value& key) {
    if (object.is_undefined()) fail_undefined(object);
    if (auto item = find_item(runtime, object, key)) return *std::move(item);
    if (key.is_text()) {
        if (auto attribute = find_attribute(runtime, object, key.view())) {
            return *std::move(attribute);
        }
        return undefined_attribute(object, key.view());
    }
    UndefinedOrigin origin{{}, std::string(type_name(object)), {}, true, false};
    if (!key.is_compound()) {
        TextBuilder name(runtime.heap());
        append_repr(runtime, name, key);
        origin.name = name.take();
    }
    return Value(Undefined{std::make_shared<UndefinedOrigin>(std::move(origin))});
}

Value get_slice(Runtime& runtime, const Value& object, const SliceBounds& bounds) {
    if (object.is_undefined()) fail_undefined(object);
    if (object.is_text()) return slice_text(runtime, object, bounds);
    const bool is_range =
        object.is_object() && dynamic_cast<const Range*>(&object.object()) != nullptr;
    if (!object.is_sequence() && !is_range) {
        fail(fmt::format("'{}' object can't be sliced", type_name(object)));
    }
    if (is_range) {
        const auto& numbers = static_cast<const Range&>(object.object());
        const SliceRange part = resolve_slice(bounds, static_cast<std::size_t>(*numbers.length()));
        return make_object(numbers.part(part.start, part.stop, part.step));
    }
    const Value& sequence = object;
    const SliceRange range = resolve_slice(bounds, sequence.items().size());
    std::vector<Value> items;
    runtime.heap().require(static_cast<std::size_t>(range.count) * sizeof(Value));
    items.reserve(static_cast<std::size_t>(range.count));
    for (std::int64_t each = 0; each < range.count; ++each) {
        items.push_back(
            sequence.items()[static_cast<std::size_t>(range.start + each * range.step)]);
    }
    return object.is_tuple() ? runtime.heap().tuple(std::move(items))
                             : runtime.heap().list(std::move(items));
}

bool is_iterable(const Value& value) {
    switch (value.kind()) {
        case Value::Kind::kUndefined:
        case Value::Kind::kText:
        case Value::Kind::kSequence:
        case Value::Kind::kDict:
            return true;
        case Value::Kind::kObject:
            return value.object().is_iterable();
        default:
            return false;
    }
}

Value to_sequence(Runtime& runtime, const Value& value) {
    runtime.tick();
    switch (value.kind()) {
        case Value::Kind::kUndefined:
            return runtime.heap().list({});
        case Value::Kind::kText:
            return characters_of(runtime, value.view());
        case Value::Kind::kSequence:
            return value;
        case Value::Kind::kDict: {
            std::vector<Value> keys;
            keys.reserve(value.dict().size());
            for (const auto& [key, item] : value.dict().entries()) keys.push_back(key);
            return runtime.heap().list(std::move(keys));
        }
        case Value::Kind::kObject:
            if (value.object().is_iterable()) return value.object().items(runtime);
            break;
        default:
            break;
    }
    fail(fmt::format("'{}' object is not iterable", type_name(value)));
}

std::optional<std::int64_t> length_of(const Value& value) {
    switch (value.kind()) {
        case Value::Kind::kUndefined:
            return 0;
        case Value::Kind::kText:
            return static_cast<std::int64_t>(value.text().length);
        case Value::Kind::kSequence:
            return static_cast<std::int64_t>(value.items().size());
        case Value::Kind::kDict:
            return static_cast<std::int64_t>(value.dict().size());
        case Value::Kind::kObject:
            return value.object().length();
        default:
            return {};
    }
}

Value make_list(Runtime& runtime, const Value& iterable) {
    Value sequence = to_sequence(runtime, iterable);
    return sequence.is_list() ? sequence : runtime.heap().list(sequence.items());
}

}  // namespace pagoda::text::jinja
