#include "text/jinja/value.h"

#include <algorithm>

#include "text/jinja/object.h"
#include "text/jinja/operations.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

namespace {

// Fewer entries are searched one by one.
constexpr std::size_t kMinIndexedEntries = 12;

}  // namespace

bool Value::is_tuple() const {
    return is_sequence() && sequence().is_tuple;
}

const std::vector<Value>& Value::items() const {
    return sequence().items;
}

std::string_view Value::view() const {
    return text().bytes;
}

std::int64_t Value::integral() const {
    return is_bool() ? (boolean() ? 1 : 0) : integer();
}

double Value::number() const {
    return is_float() ? *std::get_if<double>(&data_) : static_cast<double>(integral());
}

const void* Value::identity() const {
    switch (kind()) {
        case Kind::kText:
            return std::get_if<TextPtr>(&data_)->get();
        case Kind::kSequence:
            return std::get_if<SequencePtr>(&data_)->get();
        case Kind::kDict:
            return std::get_if<DictPtr>(&data_)->get();
        case Kind::kObject:
            return std::get_if<ObjectPtr>(&data_)->get();
        default:
            return nullptr;
    }
}

int Value::depth() const {
    switch (kind()) {
        case Kind::kSequence:
            return sequence().depth;
        case Kind::kDict:
            return dict().depth();
        case Kind::kObject:
            return object().depth();
        default:
            return 0;
    }
}

void Dict::index_entries() const {
    for (; indexed_ < entries_.size(); ++indexed_) {
        index_.emplace(hash_value(entries_[indexed_].first), static_cast<std::uint32_t>(indexed_));
    }
}

template <class Matches>
const Dict::Entry* Dict::find_entry(std::size_t hash, const Matches& matches) const {
    index_entries();
    const auto [begin, end] = index_.equal_range(hash);
    for (auto each = begin; each != end; ++each) {
        if (matches(entries_[each->second].first)) return &entries_[each->second];
    }
    return nullptr;
}

const Value* Dict::find(Meter& meter, const Value& key) const {
    const auto matches = [&](const Value& other) { return equal(meter, other, key); };
    const std::size_t hash = hash_value(key);
    meter.tick();
    if (entries_.size() >= kMinIndexedEntries) {
        const Entry* const entry = find_entry(hash, matches);
        return entry == nullptr ? nullptr : &entry->second;
    }
    for (const Entry& entry : entries_) {
        if (matches(entry.first)) return &entry.second;
    }
    return nullptr;
}

const Value* Dict::find(std::string_view key) const {
    const auto matches = [key](const Value& other) {
        return other.is_text() && other.view() == key;
    };
    if (entries_.size() >= kMinIndexedEntries) {
        const Entry* const entry = find_entry(std::hash<std::string_view>{}(key), matches);
        return entry == nullptr ? nullptr : &entry->second;
    }
    for (const Entry& entry : entries_) {
        if (matches(entry.first)) return &entry.second;
    }
    return nullptr;
}

void Dict::set(Meter& meter, Value key, Value value) {
    if (const Value* existing = find(meter, key)) {
        depth_ = std::max(depth_, value.depth() + 1);
        *const_cast<Value*>(existing) = std::move(value);  // NOLINT: our own entry
        return;
    }
    append(std::move(key), std::move(value));
}

void Dict::append(Value key, Value value) {
    depth_ = std::max({depth_, key.depth() + 1, value.depth() + 1});
    entries_.emplace_back(std::move(key), std::move(value));
}

Value make_text(std::string bytes) {
    auto made = std::make_shared<Text>();
    made->length = count_code_points(bytes);
    made->bytes = std::move(bytes);
    return Value(Value::TextPtr(std::move(made)));
}

}  // namespace pagoda::text::jinja
