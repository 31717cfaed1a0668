// Json::parse. The grammar is nlohmann-json's event parser, which is iterative; limits, duplicate
// keys, positions and messages are ours.

#include "base/json.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/utf8.h"

namespace pagoda::base {
namespace {

constexpr std::size_t kMaxShownBytes = 64;
// Below this many members a scan finds a duplicate faster than a table does.
constexpr std::size_t kMaxScannedMembers = 16;

Error error_at(std::string_view text, std::size_t offset, std::string_view reason) {
    const std::string_view before = text.substr(0, offset);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t newline = before.rfind('\n');
    const std::string_view same_line =
        newline == std::string_view::npos ? before : before.substr(newline + 1);
    const auto column = num_characters(same_line) + 1;
    return invalid(fmt::format("line {}, column {}: {}", line, column, reason));
}

std::string shown(std::string_view text) {
    if (text.size() <= kMaxShownBytes) return Json(text).dump();
    return Json(cut_utf8(text, kMaxShownBytes)).dump() + "...";
}

// Reads the text for the library and lets us know how far it is.
class TrackedIterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    TrackedIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}
    reference operator*() const { return *at_; }
    TrackedIterator& operator++() {
        *reached_ = ++at_;
        return *this;
    }
    TrackedIterator operator++(int) {
        const TrackedIterator before = *this;
        ++*this;
        return before;
    }
    friend bool operator==(const TrackedIterator& a, const TrackedIterator& b) {
        return a.at_ == b.at_;
    }

  private:
    const char* at_;
    const char** reached_;
};

// The keys of a large object: places of its members, in a table of open addressing with linear
// probing that is at most half full. Four to eight bytes a key; the names lie in the object alone.
// The hash key is drawn per document, so that nobody can prepare colliding names.
class KeySet {
  public:
    explicit KeySet(const HashKey& key) : key_(&key) {}

    // The member of that name, or null.
    [[nodiscard]] const Json::Member* find(const Json::Object& members,
                                           const std::string& name) const {
        const std::size_t slot = slot_of(members, name);
        return slots_[slot] == kFree ? nullptr : &members[slots_[slot]];
    }
    // Takes in the members from the last call on.
    void update(const Json::Object& members) {
        if (2 * (members.size() + 1) > slots_.size()) {
            slots_.assign(std::bit_ceil(4 * (members.size() + 1)), kFree);
            num_known_ = 0;
        }
        for (; num_known_ < members.size(); ++num_known_)
            slots_[slot_of(members, members[num_known_].first)] =
                static_cast<std::uint32_t>(num_known_);
    }

  private:
    static constexpr std::uint32_t kFree = std::numeric_limits<std::uint32_t>::max();

    // Where the name stands, or the free slot where it belongs.
    [[nodiscard]] std::size_t slot_of(const Json::Object& members, const std::string& name) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t slot = static_cast<std::size_t>(hash128(name, *key_).low) & mask;
        while (slots_[slot] != kFree && members[slots_[slot]].first != name)
            slot = (slot + 1) & mask;
        return slot;
    }

    const HashKey* key_;  // of the document's reader, which outlives this
    std::vector<std::uint32_t> slots_;
    std::size_t num_known_ = 0;
};

// A container that is being read.
struct Open {
    Json value;
    std::string key = {};  // of the member whose value comes next
    std::optional<KeySet> keys = std::nullopt;
};

// Our words for what the library objects to, by a phrase of its message.
struct Reason {
    std::string_view phrase;
    std::string_view words;
};
constexpr std::string_view kTooLarge = "this number is too large for a double";
constexpr std::string_view kLastRead = "; last read: ";
constexpr Reason kReasons[] = {
    {"number overflow", kTooLarge},
    {"missing closing quote", "the text ends inside a string"},
    {"4 hex digits", "\\u in a string must be followed by four hex digits"},
    {"surrogate", "an escaped surrogate in a string has no partner"},
    {"after backslash", "this escape in a string is none of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u"},
    {"control character", "a control character in a string must be escaped"},
    {"unexpected end of input", "the text ends too early"},
    {"invalid number", "this number is malformed"},
    {"object key", "expected a key in double quotes"},
    {"object separator", "expected ':' after the key"},
    {"while parsing array", "expected ',' or ']'"},
    {"while parsing object", "expected ',' or '}'"},
};

std::string_view reason_for(std::string_view message) {
    // What follows is the user's own text.
    const std::string_view head = message.substr(0, message.find(kLastRead));
    const bool ended = head.find("unexpected end of input") != std::string_view::npos;
    if (!ended && message.ends_with("expected end of input")) return "text after the document";
    for (const Reason& reason : kReasons) {
        if (head.find(reason.phrase) != std::string_view::npos) return reason.words;
    }
    return "expected a value";
}

bool is_lower(char byte) {
    return byte >= 'a' && byte <= 'z';
}

bool is_number_byte(char byte) {
    return std::string_view("0123456789+-.eE").find(byte) != std::string_view::npos;
}

// Builds the document from the library's events. An event that returns false ends the parse, with
// the reason in `error`. The names of the events are the library's.
class Builder {
  public:
    Builder(std::string_view text, const Json::ParseLimits& limits)
        : text_(text), limits_(limits), reached_(text.data()) {}

    const char** reached() { return &reached_; }
    Result<Json> finish() {
        if (error_) return *std::move(error_);
        if (has_too_many())
            return Error{ErrorCode::kResourceExhausted,
                         fmt::format("the document has {} values, at most {} are allowed",
                                     num_values_, limits_.max_values)};
        return std::move(root_);
    }

    bool null() { return add(Json()); }
    bool boolean(bool value) { return add(Json(value)); }
    bool number_integer(std::int64_t value) { return add(Json(value)); }
    bool number_unsigned(std::uint64_t value) {
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
            return add(Json(static_cast<double>(value)));
        }
        return add(Json(static_cast<std::int64_t>(value)));
    }
    bool number_float(double value, const std::string& digits) {
        if (!std::isfinite(value)) return fail(offset() - digits.size(), kTooLarge);
        return add(Json(value));
    }
    bool string(std::string& value) { return add(Json(std::move(value))); }
    bool binary(const std::vector<std::uint8_t>&) { return fail(offset(), "binary value"); }

    bool start_object(std::size_t) { return open(Json::object()); }
    bool start_array(std::size_t) { return open(Json::array()); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }

    bool key(std::string& name) {
        if (has_too_many()) return true;
        Open& top = open_.back();
        if (is_duplicate(top, name)) {
            return fail(start_of_string(), fmt::format("duplicate key {}", shown(name)));
        }
        top.key = std::move(name);
        return true;
    }

    // `position` counts the bytes read, and one more when the end was met.
    bool parse_error(std::size_t position, const std::string&, const std::exception& problem) {
        const std::string_view message = problem.what();
        const std::size_t at = position == 0 ? 0 : std::min(position - 1, text_.size());
        // A token that is malformed is pointed at where it breaks, one in the wrong place at its
        // start.
        const bool is_malformed = message.find(kLastRead) != std::string_view::npos;
        return fail(is_malformed ? at : start_of_token(at), reason_for(message));
    }

  private:
    bool fail(std::size_t at, std::string_view reason) {
        error_ = error_at(text_, at, reason);
        return false;
    }

    // One past the last byte that the library has read.
    std::size_t offset() const { return static_cast<std::size_t>(reached_ - text_.data()); }

    // The start of the token whose last byte is at `last`.
    std::size_t start_of_token(std::size_t last) const {
        if (last == text_.size()) return last;
        if (text_[last] == '"') return start_of_string();
        std::size_t start = last;
        const auto belongs = is_lower(text_[last]) ? is_lower : is_number_byte;
        while (belongs(text_[last]) && start > 0 && belongs(text_[start - 1])) --start;
        return start;
    }

    // The opening quote of the string that ends just before offset().
    std::size_t start_of_string() const {
        std::size_t quote = offset() - 1;
        bool escaped = true;
        while (escaped) {
            quote = text_.rfind('"', quote - 1);
            const std::size_t other = text_.find_last_not_of('\\', quote - 1);
            escaped = (quote - other) % 2 == 0;
        }
        return quote;
    }

    bool is_duplicate(Open& top, const std::string& name) {
        const Json::Object& members = top.value.as_object();
        if (members.size() < kMaxScannedMembers) return top.value.find(name) != nullptr;
        if (!top.keys) {
            if (!hash_key_) hash_key_ = HashKey::random();
            top.keys.emplace(*hash_key_);
        }
        top.keys->update(members);
        return top.keys->find(members, name) != nullptr;
    }

    // False once there are too many: what was built goes, and the rest is only counted, for the
    // message.
    bool count_value() {
        if (++num_values_ <= limits_.max_values) return true;
        if (num_values_ == limits_.max_values + 1) {
            open_.clear();
            root_ = Json();
        }
        return false;
    }
    bool has_too_many() const { return num_values_ > limits_.max_values; }

    bool add(Json value) {
        if (count_value()) place(std::move(value));
        return true;
    }

    void place(Json value) {
        if (open_.empty()) {
            root_ = std::move(value);
        } else if (open_.back().value.is_array()) {
            open_.back().value.push_back(std::move(value));
        } else {
            Open& top = open_.back();
            top.value.as_object().emplace_back(std::move(top.key), std::move(value));
        }
    }

    bool open(Json empty) {
        if (!count_value()) return true;
        if (open_.size() >= static_cast<std::size_t>(std::max(limits_.max_depth, 0))) {
            return fail(offset() - 1,
                        fmt::format("nested deeper than {} levels", limits_.max_depth));
        }
        open_.push_back(Open{.value = std::move(empty)});
        return true;
    }

    bool close() {
        if (has_too_many()) return true;
        Json value = std::move(open_.back().value);
        open_.pop_back();
        place(std::move(value));
        return true;
    }

    const std::string_view text_;
    const Json::ParseLimits limits_;
    const char* reached_;
    std::optional<HashKey> hash_key_;
    std::vector<Open> open_;
    std::size_t num_values_ = 0;
    Json root_;
    std::optional<Error> error_;
};

// What the library would let pass or would not place exactly.
std::optional<Error> find_bad_bytes(std::string_view text) {
    if (text.starts_with("\xef\xbb\xbf")) {
        return error_at(text, 0, "the text starts with a byte-order mark, which JSON forbids");
    }
    const std::size_t valid = valid_utf8_prefix(text);
    if (valid != text.size()) {
        const auto byte = static_cast<unsigned>(static_cast<unsigned char>(text[valid]));
        return error_at(text, valid, fmt::format("invalid UTF-8 at byte 0x{:02x}", byte));
    }
    const std::size_t zero = text.find('\0');
    if (zero != std::string_view::npos) return error_at(text, zero, "the text holds a zero byte");
    return std::nullopt;
}

}  // namespace

Result<Json> Json::parse(std::string_view text, const ParseLimits& limits) {
    if (std::optional<Error> error = find_bad_bytes(text)) return *std::move(error);
    Builder builder(text, limits);
    const TrackedIterator first(text.data(), builder.reached());
    const TrackedIterator last(text.data() + text.size(), builder.reached());
    nlohmann::json::sax_parse(first, last, &builder);
    return builder.finish();
}

}  // namespace pagoda::base
