// Filters over sequences as wholes: order, size, parts.

#include <algorithm>

#include <fmt/core.h>

#include "text/jinja/attribute_path.h"
#include "text/jinja/failure.h"
#include "text/jinja/native.h"
#include "text/jinja/object.h"
#include "text/jinja/operations.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

namespace {

Value length(Runtime&, const Value& subject, const Bound&) {
    const auto length = length_of(subject);
    if (!length) fail(fmt::format("object of type '{}' has no len()", type_name(subject)));
    return Value(*length);
}

Value list(Runtime& runtime, const Value& subject, const Bound&) {
    return make_list(runtime, subject);
}

Value first(Runtime& runtime, const Value& subject, const Bound&) {
    if (subject.is_object()) {
        if (auto* generator = dynamic_cast<Generator*>(&subject.object())) {
            if (auto item = generator->next()) return *std::move(item);
            return undefined_hint("No first item, sequence was empty.");
        }
    }
    if (subject.is_text() && !subject.view().empty()) {
        return get_item(runtime, subject, Value(std::int64_t{0}));
    }
    const Value sequence = to_sequence(runtime, subject);
    if (sequence.items().empty()) return undefined_hint("No first item, sequence was empty.");
    return sequence.items().front();
}

Value last(Runtime& runtime, const Value& subject, const Bound&) {
    if (subject.is_object() && type_name(subject) == "generator") {
        fail("'generator' object is not reversible");
    }
    if (subject.is_text() && !subject.view().empty()) {
        return get_item(runtime, subject, Value(std::int64_t{-1}));
    }
    const Value sequence = to_sequence(runtime, subject);
    if (sequence.items().empty()) return undefined_hint("No last item, sequence was empty.");
    return sequence.items().back();
}

Value reverse(Runtime& runtime, const Value& subject, const Bound&) {
    if (subject.is_text()) return runtime.heap().text(reversed(subject.view()));
    const Value sequence = to_sequence(runtime, subject);
    std::vector<Value> items(sequence.items().rbegin(), sequence.items().rend());
    const bool is_list = subject.is_object() && type_name(subject) == "generator";
    return is_list ? runtime.heap().list(std::move(items))
                   : make_generator(runtime, std::move(items), "reverse");
}

Value join(Runtime& runtime, const Value& subject, const Bound& arguments) {
    const Value separator =
        arguments.has(0) ? to_text(runtime, arguments.at(0)) : runtime.heap().text("");
    const AttributePath path =
        arguments.is_none(1) ? AttributePath() : AttributePath(runtime, arguments.at(1));
    const Value sequence = to_sequence(runtime, subject);
    TextBuilder out(runtime.heap());
    bool is_first = true;
    for (const Value& item : sequence.items()) {
        runtime.tick();
        if (!is_first) out.append(separator.view());
        is_first = false;
        append_string(runtime, out, path.of(runtime, item));
    }
    return runtime.heap().text(out.take());
}

struct Keyed {
    Value key;
    Value item;
};

void sort_by_key(Runtime& runtime, std::vector<Keyed>& items, bool is_reverse) {
    std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
        return is_reverse ? less(runtime.meter(), b.key, a.key)
                          : less(runtime.meter(), a.key, b.key);
    });
}

// The keys of sort's attribute, which may name several, separated by commas.
std::vector<AttributePath> sort_paths(Runtime& runtime, const Bound& arguments) {
    std::vector<AttributePath> paths;
    if (arguments.has(2) && arguments.at(2).is_text()) {
        std::string_view rest = arguments.view(2, "");
        for (;;) {
            const std::size_t end = std::min(rest.find(','), rest.size());
            paths.emplace_back(runtime, runtime.heap().text(rest.substr(0, end)));
            if (end == rest.size()) break;
            rest.remove_prefix(end + 1);
        }
    } else {
        paths.emplace_back(runtime, arguments.has(2) ? arguments.at(2) : Value::none());
    }
    return paths;
}

Value sort(Runtime& runtime, const Value& subject, const Bound& arguments) {
    std::vector<AttributePath> paths = sort_paths(runtime, arguments);
    for (AttributePath& path : paths) {
        if (!arguments.boolean(1, false)) path.fold_case();
    }
    const Value sequence = to_sequence(runtime, subject);
    const Charge charge = runtime.heap().charge(sequence.items().size() * sizeof(Keyed));
    std::vector<Keyed> keyed;
    keyed.reserve(sequence.items().size());
    for (const Value& item : sequence.items()) {
        std::vector<Value> keys;
        keys.reserve(paths.size());
        for (const AttributePath& path : paths) keys.push_back(path.of(runtime, item));
        keyed.push_back({runtime.heap().list(std::move(keys)), item});
    }
    sort_by_key(runtime, keyed, arguments.boolean(0, false));
    std::vector<Value> items;
    items.reserve(keyed.size());
    for (Keyed& each : keyed) items.push_back(std::move(each.item));
    return runtime.heap().list(std::move(items));
}

Value dictsort(Runtime& runtime, const Value& subject, const Bound& arguments) {
    const std::string_view by = arguments.view(1, "key");
    if (by != "key" && by != "value") fail("you can only sort by either \"key\" or \"value\"");
    require_defined(subject);
    if (!subject.is_dict())
        fail(fmt::format("dictsort() needs a mapping, got {}", type_name(subject)));
    std::vector<Keyed> keyed;
    for (const auto& [key, value] : subject.dict().entries()) {
        const Value& chosen = by == "key" ? key : value;
        keyed.push_back({arguments.boolean(0, false) ? chosen : folded(runtime, chosen),
                         runtime.heap().tuple({key, value})});
    }
    sort_by_key(runtime, keyed, arguments.boolean(2, false));
    std::vector<Value> items;
    items.reserve(keyed.size());
    for (Keyed& each : keyed) items.push_back(std::move(each.item));
    return runtime.heap().list(std::move(items));
}

Value unique(Runtime& runtime, const Value& subject, const Bound& arguments) {
    AttributePath path(runtime, arguments.has(1) ? arguments.at(1) : Value::none());
    if (!arguments.boolean(0, false)) path.fold_case();
    const Value sequence = to_sequence(runtime, subject);
    auto seen = runtime.heap().new_dict(sequence.items().size());
    std::vector<Value> items;
    for (const Value& item : sequence.items()) {
        Value key = path.of(runtime, item);
        if (seen->find(runtime.meter(), key) != nullptr) continue;
        seen->append(std::move(key), Value::none());
        items.push_back(item);
    }
    return make_generator(runtime, std::move(items), "unique");
}

template <bool kWantsLargest>
Value extreme(Runtime& runtime, const Value& subject, const Bound& arguments) {
    AttributePath path(runtime, arguments.has(1) ? arguments.at(1) : Value::none());
    if (!arguments.boolean(0, false)) path.fold_case();
    const Value sequence = to_sequence(runtime, subject);
    if (sequence.items().empty()) return undefined_hint("No aggregated item, sequence was empty.");
    Value best = sequence.items().front();
    Value best_key = path.of(runtime, best);
    for (std::size_t at = 1; at < sequence.items().size(); ++at) {
        Value key = path.of(runtime, sequence.items()[at]);
        const bool is_better = kWantsLargest ? less(runtime.meter(), best_key, key)
                                             : less(runtime.meter(), key, best_key);
        if (!is_better) continue;
        best = sequence.items()[at];
        best_key = std::move(key);
    }
    return best;
}

Value groupby(Runtime& runtime, const Value& subject, const Bound& arguments) {
    AttributePath path(runtime, arguments.at(0));
    if (!arguments.is_none(1)) path.set_default(arguments.at(1));
    AttributePath shown = path;
    if (!arguments.boolean(2, false)) path.fold_case();
    const Value sequence = to_sequence(runtime, subject);
    std::vector<Keyed> keyed;
    for (const Value& item : sequence.items()) keyed.push_back({path.of(runtime, item), item});
    sort_by_key(runtime, keyed, false);
    std::vector<Value> groups;
    for (std::size_t begin = 0; begin < keyed.size();) {
        std::size_t end = begin;
        std::vector<Value> items;
        while (end < keyed.size() && equal(runtime.meter(), keyed[begin].key, keyed[end].key)) {
            items.push_back(keyed[end++].item);
        }
        const Value key = shown.of(runtime, items.front());
        groups.push_back(runtime.heap().group(key, runtime.heap().list(std::move(items))));
        begin = end;
    }
    return runtime.heap().list(std::move(groups));
}

Value batch(Runtime& runtime, const Value& subject, const Bound& arguments) {
    const std::int64_t size = arguments.integer(0, 1);
    const Value sequence = to_sequence(runtime, subject);
    std::vector<Value> batches;
    std::vector<Value> current;
    for (const Value& item : sequence.items()) {
        if (static_cast<std::int64_t>(current.size()) == size) {
            batches.push_back(runtime.heap().list(std::move(current)));
            current.clear();
        }
        current.push_back(item);
    }
    if (!current.empty()) {
        const std::int64_t missing = size - static_cast<std::int64_t>(current.size());
        if (!arguments.is_none(1) && missing > 0) {
            runtime.heap().require(
                static_cast<std::size_t>(std::min<std::int64_t>(missing, 1LL << 40)) *
                sizeof(Value));
            current.insert(current.end(), static_cast<std::size_t>(missing), arguments.at(1));
        }
        batches.push_back(runtime.heap().list(std::move(current)));
    }
    return make_generator(runtime, std::move(batches), "batch");
}

Value slice(Runtime& runtime, const Value& subject, const Bound& arguments) {
    const std::int64_t count = arguments.integer(0, 1);
    if (count == 0) fail("integer division or modulo by zero");
    if (count > Range::kMaxLength) {
        fail_limit(
            fmt::format("slice() makes at most {} slices, got {}", Range::kMaxLength, count));
    }
    const Value sequence = to_sequence(runtime, subject);
    const auto size = static_cast<std::int64_t>(sequence.items().size());
    std::vector<Value> slices;
    std::int64_t begin = 0;
    for (std::int64_t each = 0; each < count; ++each) {
        const bool is_longer = each < size % count;
        const std::int64_t end = begin + size / count + (is_longer ? 1 : 0);
        std::vector<Value> part(sequence.items().begin() + begin, sequence.items().begin() + end);
        if (!arguments.is_none(1) && !is_longer) part.push_back(arguments.at(1));
        slices.push_back(runtime.heap().list(std::move(part)));
        begin = end;
    }
    return make_generator(runtime, std::move(slices), "slice");
}

Value items(Runtime& runtime, const Value& subject, const Bound&) {
    if (subject.is_undefined()) return make_generator(runtime, {}, "items");
    if (!subject.is_dict()) fail("Can only get item pairs from a mapping.");
    std::vector<Value> pairs;
    for (const auto& [key, value] : subject.dict().entries()) {
        pairs.push_back(runtime.heap().tuple({key, value}));
    }
    return make_generator(runtime, std::move(pairs), "items");
}

constexpr NativeSpec kSequenceFilters[] = {
    {"length", "", 0, length},
    {"count", "", 0, length},
    {"list", "", 0, list},
    {"first", "", 0, first},
    {"last", "", 0, last},
    {"reverse", "", 0, reverse},
    {"join", "d attribute", 0, join},
    {"sort", "reverse case_sensitive attribute", 0, sort},
    {"dictsort", "case_sensitive by reverse", 0, dictsort},
    {"unique", "case_sensitive attribute", 0, unique},
    {"min", "case_sensitive attribute", 0, extreme<false>},
    {"max", "case_sensitive attribute", 0, extreme<true>},
    {"groupby", "attribute default case_sensitive", 1, groupby},
    {"batch", "linecount fill_with", 1, batch},
    {"slice", "slices fill_with", 1, slice},
    {"items", "", 0, items},
};

}  // namespace

std::span<const NativeSpec> sequence_filters() {
    return kSequenceFilters;
}

}  // namespace pagoda::text::jinja
