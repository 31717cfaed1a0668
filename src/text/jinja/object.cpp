#include "text/jinja/object.h"

#include <algorithm>

#include <fmt/core.h>

#include "text/jinja/failure.h"
#include "text/jinja/operations.h"

namespace pagoda::text::jinja {

std::optional<Value> Object::attribute(Runtime&, std::string_view) {
    return {};
}

Value Object::call(Runtime&, const CallArguments&) {
    fail(fmt::format("'{}' object is not callable", type_name()));
}

Value Object::items(Runtime&) {
    fail(fmt::format("'{}' object is not iterable", type_name()));
}

void Object::append_repr(Runtime&, TextBuilder& out) {
    out.append(fmt::format("<{}>", type_name()));
}

bool Object::equals(Meter&, const Object& other) const {
    return this == &other;
}

Value make_object(std::shared_ptr<Object> object) {
    if (object->depth() > Heap::kMaxDepth) {
        fail_limit(fmt::format("values are nested deeper than {}", Heap::kMaxDepth));
    }
    return Value(Value::ObjectPtr(std::move(object)));
}

namespace {

std::uint64_t stride_of(std::int64_t step) {
    return step < 0 ? ~static_cast<std::uint64_t>(step) + 1 : static_cast<std::uint64_t>(step);
}

}  // namespace

Range::Range(std::int64_t start, std::int64_t stop, std::int64_t step)
    : start_(start), stop_(stop), step_(step), length_(0) {
    // Unsigned, where no difference overflows.
    const bool is_empty = step > 0 ? start >= stop : start <= stop;
    const auto low = static_cast<std::uint64_t>(step > 0 ? start : stop);
    const auto high = static_cast<std::uint64_t>(step > 0 ? stop : start);
    const std::uint64_t length = is_empty ? 0 : (high - low - 1) / stride_of(step) + 1;
    if (length > static_cast<std::uint64_t>(kMaxLength))
        fail_limit(fmt::format("a range is longer than {}", kMaxLength));
    length_ = static_cast<std::int64_t>(length);
}

Value Range::items(Runtime& runtime) {
    std::vector<Value> numbers;
    runtime.heap().require(static_cast<std::size_t>(length_) * sizeof(Value));
    numbers.reserve(static_cast<std::size_t>(length_));
    for (std::int64_t index = 0; index < length_; ++index) numbers.emplace_back(at(index));
    return runtime.heap().list(std::move(numbers));
}

void Range::append_repr(Runtime&, TextBuilder& out) {
    out.append(step_ == 1 ? fmt::format("range({}, {})", start_, stop_)
                          : fmt::format("range({}, {}, {})", start_, stop_, step_));
}

bool Range::equals(Meter&, const Object& other) const {
    const auto* const range = dynamic_cast<const Range*>(&other);
    if (range == nullptr || range->length_ != length_) return false;
    return length_ == 0 || (range->start_ == start_ && (length_ == 1 || range->step_ == step_));
}

bool Range::contains(std::int64_t number) const {
    if (length_ == 0) return false;
    const std::int64_t first = std::min(start_, at(length_ - 1));
    const std::int64_t last = std::max(start_, at(length_ - 1));
    if (number < first || number > last) return false;
    const std::uint64_t distance =
        static_cast<std::uint64_t>(number) - static_cast<std::uint64_t>(first);
    return distance % stride_of(step_) == 0;
}

std::shared_ptr<Range> Range::part(std::int64_t start, std::int64_t stop, std::int64_t step) const {
    std::int64_t stride = 0, first = 0, end = 0;
    const bool overflows = __builtin_mul_overflow(step_, step, &stride) ||
                           __builtin_mul_overflow(step_, start, &first) ||
                           __builtin_add_overflow(start_, first, &first) ||
                           __builtin_mul_overflow(step_, stop, &end) ||
                           __builtin_add_overflow(start_, end, &end);
    if (overflows) fail("a slice of a range does not fit in 64 bits");
    return std::make_shared<Range>(first, end, stride);
}

std::string_view DictView::type_name() const {
    if (part_ == Part::kKeys) return "dict_keys";
    return part_ == Part::kValues ? "dict_values" : "dict_items";
}

Value DictView::items(Runtime& runtime) {
    std::vector<Value> items;
    items.reserve(dict_.dict().size());
    for (const auto& [key, value] : dict_.dict().entries()) {
        switch (part_) {
            case Part::kKeys:
                items.push_back(key);
                break;
            case Part::kValues:
                items.push_back(value);
                break;
            case Part::kItems:
                items.push_back(runtime.heap().tuple({key, value}));
                break;
        }
    }
    return runtime.heap().list(std::move(items));
}

std::optional<std::int64_t> DictView::length() const {
    return static_cast<std::int64_t>(dict_.dict().size());
}

void DictView::append_repr(Runtime& runtime, TextBuilder& out) {
    out.append(type_name());
    out.append('(');
    jinja::append_repr(runtime, out, items(runtime));
    out.append(')');
}

Value Generator::items(Runtime& runtime) {
    if (at_ == 0) {
        at_ = rest_.items().size();
        return rest_.is_list() ? rest_ : runtime.heap().list(rest_.items());
    }
    std::vector<Value> remaining(rest_.items().begin() + static_cast<std::ptrdiff_t>(at_),
                                 rest_.items().end());
    at_ = rest_.items().size();
    return runtime.heap().list(std::move(remaining));
}

std::optional<Value> Generator::next() {
    if (at_ >= rest_.items().size()) return {};
    return rest_.items()[at_++];
}

void Generator::append_repr(Runtime&, TextBuilder& out) {
    out.append(fmt::format("<generator object {}>", name_));
}

Value make_generator(Runtime& runtime, std::vector<Value> items, std::string_view name) {
    return make_object(std::make_shared<Generator>(runtime.heap().list(std::move(items)), name));
}

Namespace::~Namespace() {
    std::vector<Value> values;
    surrender(values);
    if (!values.empty()) heap_.dispose(std::move(values));
}

void Namespace::surrender(std::vector<Value>& into) {
    for (auto& [name, value] : members_) {
        if (value.is_compound()) into.push_back(std::move(value));
    }
    members_.clear();
}

std::optional<Value> Namespace::attribute(Runtime&, std::string_view name) {
    const auto found = std::find_if(members_.begin(), members_.end(),
                                    [name](const auto& member) { return member.first == name; });
    return found == members_.end() ? std::nullopt : std::optional<Value>(found->second);
}

void Namespace::append_repr(Runtime& runtime, TextBuilder& out) {
    const Runtime::Level level(runtime);
    out.append("<Namespace {");
    bool is_first = true;
    for (const auto& [name, value] : members_) {
        if (!is_first) out.append(", ");
        is_first = false;
        out.append(quoted(name));
        out.append(": ");
        jinja::append_repr(runtime, out, value);
    }
    out.append("}>");
}

void Namespace::set(std::string_view name, Value value) {
    for (auto& [known, old] : members_) {
        if (known != name) continue;
        // The old value may own much: it goes only after the new one stands.
        std::swap(old, value);
        return;
    }
    charge_.grow(sizeof(Value) + 64 + name.size());
    members_.emplace_back(name, std::move(value));
}

Value NativeFunction::call(Runtime& runtime, const CallArguments& arguments) {
    return spec_.function(runtime, self_, Bound(spec_, arguments));
}

void NativeFunction::append_repr(Runtime&, TextBuilder& out) {
    out.append(fmt::format("<function {}>", spec_.name));
}

namespace {

Value cycler_next(Runtime&, const Value& self, const Bound&) {
    return static_cast<Cycler&>(self.object()).next();
}

Value cycler_reset(Runtime&, const Value& self, const Bound&) {
    static_cast<Cycler&>(self.object()).reset();
    return Value::none();
}

constexpr NativeSpec kCyclerNext{"next", "", 0, cycler_next};
constexpr NativeSpec kCyclerReset{"reset", "", 0, cycler_reset};

}  // namespace

std::optional<Value> Cycler::attribute(Runtime&, std::string_view name) {
    if (name == "current") return current();
    if (name == "next") {
        return make_object(
            std::make_shared<NativeFunction>(kCyclerNext, Value(shared_from_this())));
    }
    if (name == "reset") {
        return make_object(
            std::make_shared<NativeFunction>(kCyclerReset, Value(shared_from_this())));
    }
    return {};
}

Value Cycler::next() {
    const Value value = current();
    at_ = (at_ + 1) % items_.items().size();
    return value;
}

Value Joiner::call(Runtime& runtime, const CallArguments&) {
    if (is_used_) return separator_;
    is_used_ = true;
    return runtime.heap().text("");
}

}  // namespace pagoda::text::jinja
