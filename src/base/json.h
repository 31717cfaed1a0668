#pragma once
// Json: a small value type for documents that come from and go to the outside. Objects keep the
// order of their keys. Parsing (RFC 8259) is strict, iterative and limited; nlohmann-json stays
// inside json.cpp, so that this header costs nothing. A value is 16 bytes, and text and containers
// lie elsewhere, so that long lists of numbers stay small. A value type; not thread-safe.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace pagoda::base {

class Json {
  public:
    using Array = std::vector<Json>;
    using Member = std::pair<std::string, Json>;
    using Object = std::vector<Member>;
    enum class Type { kNull, kBool, kInt, kDouble, kString, kArray, kObject };

    struct ParseLimits {
        int max_depth = 128;
        // Scalars and containers of the whole document; at most as many keys. With the length of
        // the text this bounds the memory: a value costs some 150 bytes at worst beside its text.
        std::size_t max_values = 10'000'000;
    };
    struct DumpOptions {
        int indent = -1;                        // -1: one line
        std::string_view item_separator = ",";  // between items
        std::string_view key_separator = ":";   // between key and value
        bool ensure_ascii = false;              // escape everything above 0x7e
        bool sort_keys = false;
    };

    Json() = default;
    Json(std::nullptr_t) {}                                     // NOLINT: implicit
    template <std::same_as<bool> Bool>                          // a pointer is no boolean
    Json(Bool value) : value_(value) {}                         // NOLINT: implicit
    Json(int value) : value_(std::int64_t{value}) {}            // NOLINT: implicit
    Json(std::int64_t value) : value_(value) {}                 // NOLINT: implicit
    Json(double value) : value_(value) {}                       // NOLINT: implicit
    Json(std::string value);                                    // NOLINT: implicit
    Json(std::string_view value) : Json(std::string(value)) {}  // NOLINT: implicit
    Json(const char* value) : Json(std::string(value)) {}       // NOLINT: implicit
    Json(Array value);                                          // NOLINT: implicit
    Json(Object value);                                         // NOLINT: implicit

    static Json array() { return Json(Array{}); }
    static Json object() { return Json(Object{}); }

    // Errors name line and column, the depth, the duplicate key; too many values are
    // kResourceExhausted, everything else kInvalidArgument. Invalid UTF-8, duplicate keys, a
    // byte-order mark and trailing text are refused. Integers outside int64 become kDouble.
    [[nodiscard]] static Result<Json> parse(std::string_view text, const ParseLimits& limits);
    [[nodiscard]] static Result<Json> parse(std::string_view text) {
        return parse(text, ParseLimits{});
    }

    // Always valid JSON: invalid UTF-8 is written as U+FFFD, NaN and infinities as null. Doubles
    // are the shortest text that reads back equal, and keep a point or exponent: 1.0, 1e-05. The
    // text is that of Python's json.dumps under the same separators, indent and ensure_ascii.
    [[nodiscard]] std::string dump(const DumpOptions& options) const;
    [[nodiscard]] std::string dump() const { return dump(DumpOptions{}); }

    [[nodiscard]] Type type() const { return static_cast<Type>(value_.index()); }
    [[nodiscard]] bool is_null() const { return type() == Type::kNull; }
    [[nodiscard]] bool is_bool() const { return type() == Type::kBool; }
    [[nodiscard]] bool is_int() const { return type() == Type::kInt; }
    [[nodiscard]] bool is_number() const { return is_int() || type() == Type::kDouble; }
    [[nodiscard]] bool is_string() const { return type() == Type::kString; }
    [[nodiscard]] bool is_array() const { return type() == Type::kArray; }
    [[nodiscard]] bool is_object() const { return type() == Type::kObject; }
    // "null", "boolean", "integer", "number", "string", "array", "object"
    [[nodiscard]] std::string_view type_name() const;

    // REQUIRES: the value has that type (as_double also takes integers).
    [[nodiscard]] bool as_bool() const;
    [[nodiscard]] std::int64_t as_int() const;
    [[nodiscard]] double as_double() const;
    [[nodiscard]] const std::string& as_string() const;
    [[nodiscard]] const Array& as_array() const;
    [[nodiscard]] Array& as_array();
    [[nodiscard]] const Object& as_object() const;
    [[nodiscard]] Object& as_object();

    // The member of that key, or null when this is no object or has none.
    [[nodiscard]] const Json* find(std::string_view key) const;
    [[nodiscard]] Json* find(std::string_view key);
    // Sets or appends a member. REQUIRES: is_object(). Returns *this, for chains.
    Json& set(std::string_view key, Json value);
    // Appends. REQUIRES: is_array().
    void push_back(Json value);

    // Equal as documents: members in any order, and 1 equals 1.0. NaN equals nothing.
    friend bool operator==(const Json& a, const Json& b);

  private:
    using Value =
        std::variant<std::monostate, bool, std::int64_t, double, std::unique_ptr<std::string>,
                     std::unique_ptr<Array>, std::unique_ptr<Object>>;

    [[nodiscard]] bool is_container() const { return is_array() || is_object(); }
    void release_children() noexcept;

    Value value_;

  public:
    // Destruction, copy, dump and comparison are iterative: deep values do not overflow the stack.
    ~Json() {
        if (is_container()) release_children();
    }
    Json(const Json& other);
    Json& operator=(const Json& other);
    // The source becomes null. Assigning a part of a value to the value itself is allowed.
    Json(Json&& other) noexcept : value_(std::exchange(other.value_, std::monostate{})) {}
    Json& operator=(Json&& other) noexcept {
        Value taken = std::exchange(other.value_, std::monostate{});
        value_.swap(taken);
        return *this;
    }
};

}  // namespace pagoda::base
