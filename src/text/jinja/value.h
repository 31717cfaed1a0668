#pragma once
// Value: what a template computes with; Python's types as far as templates see them. Cheap to copy:
// strings and containers are shared and never change once built. Values belong to one render (see
// Heap) and to its thread; literals of a compiled template have no heap and may be shared.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace pagoda::text::jinja {

class Dict;
class Heap;
class Meter;
class Object;
struct Sequence;
struct Text;

// Bytes taken from a heap, given back on destruction. The heap outlives its values.
class Charge final {
  public:
    Charge() = default;
    Charge(Heap* heap, std::size_t bytes) : heap_(heap), bytes_(bytes) {}  // already taken
    Charge(const Charge&) = delete;
    Charge& operator=(const Charge&) = delete;
    Charge(Charge&& other) noexcept
        : heap_(std::exchange(other.heap_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Charge& operator=(Charge&& other) noexcept {
        std::swap(heap_, other.heap_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Charge();
    void grow(std::size_t bytes);

  private:
    Heap* heap_ = nullptr;
    std::size_t bytes_ = 0;
};

// Where an undefined value came from, for the message when it is used.
struct UndefinedOrigin {
    std::string hint;         // the whole message, or empty
    std::string object_type;  // the owner that lacks it; empty for a plain name
    std::string name;
    bool is_element = false;  // a subscript that is not a string
    bool is_forbidden = false;
};

struct Undefined {
    std::shared_ptr<const UndefinedOrigin> origin;  // shared by all copies of the value
};
struct None {};

class Value final {
  public:
    enum class Kind { kUndefined, kNone, kBool, kInt, kFloat, kText, kSequence, kDict, kObject };
    using TextPtr = std::shared_ptr<const Text>;          // shared by all copies of the value
    using SequencePtr = std::shared_ptr<const Sequence>;  // likewise
    using DictPtr = std::shared_ptr<const Dict>;          // likewise
    using ObjectPtr = std::shared_ptr<Object>;            // likewise; objects may hold state

    Value() = default;  // undefined, without an origin
    explicit Value(Undefined value) : data_(std::move(value)) {}
    explicit Value(None value) : data_(value) {}
    explicit Value(bool value) : data_(value) {}
    explicit Value(std::int64_t value) : data_(value) {}
    explicit Value(double value) : data_(value) {}
    explicit Value(TextPtr value) : data_(std::move(value)) {}
    explicit Value(SequencePtr value) : data_(std::move(value)) {}
    explicit Value(DictPtr value) : data_(std::move(value)) {}
    explicit Value(ObjectPtr value) : data_(std::move(value)) {}
    static Value none() { return Value(None{}); }

    [[nodiscard]] Kind kind() const { return static_cast<Kind>(data_.index()); }
    [[nodiscard]] bool is_undefined() const { return kind() == Kind::kUndefined; }
    [[nodiscard]] bool is_none() const { return kind() == Kind::kNone; }
    [[nodiscard]] bool is_bool() const { return kind() == Kind::kBool; }
    [[nodiscard]] bool is_int() const { return kind() == Kind::kInt; }
    [[nodiscard]] bool is_float() const { return kind() == Kind::kFloat; }
    [[nodiscard]] bool is_text() const { return kind() == Kind::kText; }
    [[nodiscard]] bool is_sequence() const { return kind() == Kind::kSequence; }
    [[nodiscard]] bool is_dict() const { return kind() == Kind::kDict; }
    [[nodiscard]] bool is_object() const { return kind() == Kind::kObject; }
    // Booleans count as integers, as in Python.
    [[nodiscard]] bool is_integral() const { return is_int() || is_bool(); }
    [[nodiscard]] bool is_number() const { return is_integral() || is_float(); }
    [[nodiscard]] bool is_tuple() const;
    [[nodiscard]] bool is_list() const { return is_sequence() && !is_tuple(); }
    // May own other values.
    [[nodiscard]] bool is_compound() const { return kind() >= Kind::kSequence; }

    // REQUIRES: the value is of that kind.
    [[nodiscard]] const Undefined& undefined() const { return *std::get_if<Undefined>(&data_); }
    [[nodiscard]] bool boolean() const { return *std::get_if<bool>(&data_); }
    [[nodiscard]] std::int64_t integer() const { return *std::get_if<std::int64_t>(&data_); }
    [[nodiscard]] const Text& text() const { return **std::get_if<TextPtr>(&data_); }
    [[nodiscard]] const Sequence& sequence() const { return **std::get_if<SequencePtr>(&data_); }
    [[nodiscard]] const std::vector<Value>& items() const;
    [[nodiscard]] const Dict& dict() const { return **std::get_if<DictPtr>(&data_); }
    [[nodiscard]] Object& object() const { return **std::get_if<ObjectPtr>(&data_); }
    [[nodiscard]] const ObjectPtr& object_ptr() const { return *std::get_if<ObjectPtr>(&data_); }
    [[nodiscard]] std::string_view view() const;  // of a text
    [[nodiscard]] std::int64_t integral() const;  // REQUIRES: is_integral()
    [[nodiscard]] double number() const;          // REQUIRES: is_number()
    [[nodiscard]] const void* identity() const;   // address of shared data, null for scalars
    [[nodiscard]] int depth() const;              // levels of containers below and including it

  private:
    std::variant<Undefined, None, bool, std::int64_t, double, TextPtr, SequencePtr, DictPtr,
                 ObjectPtr>
        data_;
};

struct Text {
    std::string bytes;       // valid UTF-8
    std::size_t length = 0;  // in code points
    bool is_markup = false;  // marked safe: escape leaves it alone
    Charge charge;

    [[nodiscard]] bool is_ascii() const { return length == bytes.size(); }
};

struct Sequence {
    std::vector<Value> items;
    bool is_tuple = false;
    bool is_group = false;  // a tuple of groupby, with .grouper and .list
    int depth = 1;
    Charge charge;
};

// A mapping that keeps the order of insertion. Filled by its maker, then shared as const.
class Dict final {
  public:
    using Entry = std::pair<Value, Value>;

    explicit Dict(Charge charge = {}) : charge_(std::move(charge)) {}

    // Fails on a key that can't be hashed. An equal key keeps its place and first spelling.
    void set(Meter& meter, Value key, Value value);
    // REQUIRES: the key is not there yet.
    void append(Value key, Value value);
    [[nodiscard]] const Value* find(Meter& meter, const Value& key) const;
    [[nodiscard]] const Value* find(std::string_view key) const;
    [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] int depth() const { return depth_; }
    void clear() { entries_.clear(), index_.clear(), indexed_ = 0; }

  private:
    template <class Matches>
    const Entry* find_entry(std::size_t hash, const Matches& matches) const;
    void index_entries() const;

    std::vector<Entry> entries_;
    // Hash to place in entries_, built when a search of a large dictionary first wants it.
    mutable std::unordered_multimap<std::size_t, std::uint32_t> index_;
    mutable std::size_t indexed_ = 0;
    int depth_ = 1;
    Charge charge_;
};

// A text outside any heap, for literals and input.
[[nodiscard]] Value make_text(std::string bytes);

}  // namespace pagoda::text::jinja
