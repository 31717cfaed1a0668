// The value type: construction, copy, access and comparison, all without recursion.

#include <algorithm>

#include "base/check.h"
#include "base/json.h"

namespace pagoda::base {
namespace {

// -2^63 and 2^63: the doubles between them, the first included, convert to int64.
constexpr double kInt64Low = -9223372036854775808.0;
constexpr double kInt64High = 9223372036854775808.0;

bool equal_numbers(const Json& a, const Json& b) {
    if (a.is_int() && b.is_int()) return a.as_int() == b.as_int();
    if (!a.is_int() && !b.is_int()) return a.as_double() == b.as_double();
    // Compared as integers, since not every int64 is a double.
    const std::int64_t integer = a.is_int() ? a.as_int() : b.as_int();
    const double real = a.is_int() ? b.as_double() : a.as_double();
    if (!(real >= kInt64Low && real < kInt64High)) return false;
    const auto truncated = static_cast<std::int64_t>(real);
    return static_cast<double>(truncated) == real && truncated == integer;
}

bool equal_scalars(const Json& a, const Json& b) {
    if (a.is_number() && b.is_number()) return equal_numbers(a, b);
    if (a.type() != b.type()) return false;
    switch (a.type()) {
        case Json::Type::kBool:
            return a.as_bool() == b.as_bool();
        case Json::Type::kString:
            return a.as_string() == b.as_string();
        default:
            return true;
    }
}

using Pair = std::pair<const Json*, const Json*>;

std::vector<const Json::Member*> by_key(const Json::Object& object) {
    std::vector<const Json::Member*> members;
    members.reserve(object.size());
    for (const Json::Member& member : object) members.push_back(&member);
    std::stable_sort(members.begin(), members.end(),
                     [](const auto* a, const auto* b) { return a->first < b->first; });
    return members;
}

// Queues the pairs of values that must be equal for the objects to be; false when keys differ.
bool pair_members(const Json::Object& a, const Json::Object& b, std::vector<Pair>& pending) {
    if (a.size() != b.size()) return false;
    const std::vector<const Json::Member*> members_a = by_key(a);
    const std::vector<const Json::Member*> members_b = by_key(b);
    for (std::size_t index = 0; index < members_a.size(); ++index) {
        if (members_a[index]->first != members_b[index]->first) return false;
        pending.emplace_back(&members_a[index]->second, &members_b[index]->second);
    }
    return true;
}

bool pair_items(const Json::Array& a, const Json::Array& b, std::vector<Pair>& pending) {
    if (a.size() != b.size()) return false;
    for (std::size_t index = 0; index < a.size(); ++index)
        pending.emplace_back(&a[index], &b[index]);
    return true;
}

}  // namespace

Json::Json(std::string value) : value_(std::make_unique<std::string>(std::move(value))) {}
Json::Json(Array value) : value_(std::make_unique<Array>(std::move(value))) {}
Json::Json(Object value) : value_(std::make_unique<Object>(std::move(value))) {}

void Json::release_children() noexcept {
    std::vector<Value> pending;
    // Leaves a null in the place of a container that moves to `pending`.
    const auto detach = [&pending](Json& child) {
        if (child.is_container()) {
            pending.push_back(std::exchange(child.value_, std::monostate{}));
        }
    };
    const auto detach_all = [&detach](Value& value) {
        if (auto* array = std::get_if<std::unique_ptr<Array>>(&value)) {
            for (Json& item : **array) detach(item);
        } else if (auto* object = std::get_if<std::unique_ptr<Object>>(&value)) {
            for (Member& member : **object) detach(member.second);
        }
    };
    detach_all(value_);
    while (!pending.empty()) {
        Value value = std::move(pending.back());
        pending.pop_back();
        detach_all(value);
    }
}

Json::Json(const Json& other) {
    // Each container is made at its full size before its children are queued, so that the
    // addresses of the children stay.
    std::vector<std::pair<const Json*, Json*>> pending{{&other, this}};
    while (!pending.empty()) {
        const auto [from, to] = pending.back();
        pending.pop_back();
        if (from->is_array()) {
            const Array& source = from->as_array();
            Array& copy = *to->value_.emplace<std::unique_ptr<Array>>(std::make_unique<Array>());
            copy.resize(source.size());
            for (std::size_t index = 0; index < source.size(); ++index) {
                pending.emplace_back(&source[index], &copy[index]);
            }
        } else if (from->is_object()) {
            const Object& source = from->as_object();
            Object& copy = *to->value_.emplace<std::unique_ptr<Object>>(std::make_unique<Object>());
            copy.resize(source.size());
            for (std::size_t index = 0; index < source.size(); ++index) {
                copy[index].first = source[index].first;
                pending.emplace_back(&source[index].second, &copy[index].second);
            }
        } else if (from->is_string()) {
            to->value_ = std::make_unique<std::string>(from->as_string());
        } else if (from->is_bool()) {
            to->value_ = from->as_bool();
        } else if (from->is_int()) {
            to->value_ = from->as_int();
        } else if (from->type() == Type::kDouble) {
            to->value_ = from->as_double();
        }
    }
}

Json& Json::operator=(const Json& other) {
    if (this != &other) *this = Json(other);
    return *this;
}

std::string_view Json::type_name() const {
    switch (type()) {
        case Type::kNull:
            return "null";
        case Type::kBool:
            return "boolean";
        case Type::kInt:
            return "integer";
        case Type::kDouble:
            return "number";
        case Type::kString:
            return "string";
        case Type::kArray:
            return "array";
        case Type::kObject:
            return "object";
    }
    return "null";
}

bool Json::as_bool() const {
    CHECK(is_bool(), type_name());
    return *std::get_if<bool>(&value_);
}

std::int64_t Json::as_int() const {
    CHECK(is_int(), type_name());
    return *std::get_if<std::int64_t>(&value_);
}

double Json::as_double() const {
    CHECK(is_number(), type_name());
    if (is_int()) return static_cast<double>(as_int());
    return *std::get_if<double>(&value_);
}

const std::string& Json::as_string() const {
    CHECK(is_string(), type_name());
    return **std::get_if<std::unique_ptr<std::string>>(&value_);
}

const Json::Array& Json::as_array() const {
    CHECK(is_array(), type_name());
    return **std::get_if<std::unique_ptr<Array>>(&value_);
}

Json::Array& Json::as_array() {
    CHECK(is_array(), type_name());
    return **std::get_if<std::unique_ptr<Array>>(&value_);
}

const Json::Object& Json::as_object() const {
    CHECK(is_object(), type_name());
    return **std::get_if<std::unique_ptr<Object>>(&value_);
}

Json::Object& Json::as_object() {
    CHECK(is_object(), type_name());
    return **std::get_if<std::unique_ptr<Object>>(&value_);
}

const Json* Json::find(std::string_view key) const {
    if (!is_object()) return nullptr;
    for (const Member& member : as_object()) {
        if (member.first == key) return &member.second;
    }
    return nullptr;
}

Json* Json::find(std::string_view key) {
    return const_cast<Json*>(std::as_const(*this).find(key));  // NOLINT: the value is ours
}

Json& Json::set(std::string_view key, Json value) {
    for (Member& member : as_object()) {
        if (member.first == key) {
            member.second = std::move(value);
            return *this;
        }
    }
    as_object().emplace_back(std::string(key), std::move(value));
    return *this;
}

void Json::push_back(Json value) {
    as_array().push_back(std::move(value));
}

bool operator==(const Json& a, const Json& b) {
    std::vector<Pair> pending{{&a, &b}};
    while (!pending.empty()) {
        const auto [left, right] = pending.back();
        pending.pop_back();
        if (left->is_array() && right->is_array()) {
            if (!pair_items(left->as_array(), right->as_array(), pending)) return false;
        } else if (left->is_object() && right->is_object()) {
            if (!pair_members(left->as_object(), right->as_object(), pending)) return false;
        } else if (!equal_scalars(*left, *right)) {
            return false;
        }
    }
    return true;
}

}  // namespace pagoda::base
