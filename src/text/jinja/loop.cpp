#include <fmt/core.h>

#include "text/jinja/evaluator.h"
#include "text/jinja/failure.h"
#include "text/jinja/operations.h"

namespace pagoda::text::jinja {

namespace {

Value cycle(Runtime&, const Value& self, const Bound& arguments) {
    return static_cast<Loop&>(self.object()).cycle(arguments.all());
}

Value changed(Runtime&, const Value& self, const Bound& arguments) {
    return Value(static_cast<Loop&>(self.object()).has_changed(arguments.all()));
}

constexpr NativeSpec kCycle{"cycle", "*", 0, cycle};
constexpr NativeSpec kChanged{"changed", "*", 0, changed};

}  // namespace

Loop::Loop(Evaluator& evaluator, const ForStmt& statement, const Value& iterable, int depth)
    : evaluator_(evaluator),
      statement_(statement),
      items_(to_sequence(evaluator, iterable)),
      depth_(depth) {}

std::optional<Value> Loop::fetch() {
    if (!filtered_.empty()) {
        Value item = std::move(filtered_.back());
        filtered_.pop_back();
        return item;
    }
    while (is_open_ && next_ < items_.items().size()) {
        Value item = items_.items()[next_++];
        if (statement_.filter == nullptr || evaluator_.passes_filter(statement_, item)) return item;
    }
    return {};
}

const std::optional<Value>& Loop::peek() {
    if (!has_peeked_) {
        after_ = fetch();
        has_peeked_ = true;
    }
    return after_;
}

bool Loop::advance() {
    std::optional<Value> item = has_peeked_ ? std::move(after_) : fetch();
    has_peeked_ = false;
    after_.reset();
    if (!item) return false;
    before_ = std::move(current_);
    current_ = std::move(item);
    ++index0_;
    return true;
}

void Loop::close() {
    is_open_ = false;
    items_ = Value();
    filtered_.clear();
    before_.reset();
    current_.reset();
    after_.reset();
    last_changed_.reset();
    has_peeked_ = true;
}

// With a filter the length is only known after the rest was asked.
std::int64_t Loop::count_all() {
    if (length_) return *length_;
    if (!is_open_) return index0_ + 1;
    if (statement_.filter == nullptr) {
        length_ = static_cast<std::int64_t>(items_.items().size());
        return *length_;
    }
    std::vector<Value> rest;
    while (auto item = fetch()) rest.push_back(*std::move(item));
    length_ =
        index0_ + 1 + static_cast<std::int64_t>(rest.size()) + (has_peeked_ && after_ ? 1 : 0);
    filtered_.assign(std::make_move_iterator(rest.rbegin()), std::make_move_iterator(rest.rend()));
    return *length_;
}

std::optional<Value> Loop::attribute(Runtime&, std::string_view name) {
    if (name == "index") return Value(index0_ + 1);
    if (name == "index0") return Value(index0_);
    if (name == "first") return Value(index0_ == 0);
    if (name == "last") return Value(!peek().has_value());
    if (name == "length") return Value(count_all());
    if (name == "revindex") return Value(count_all() - index0_);
    if (name == "revindex0") return Value(count_all() - index0_ - 1);
    if (name == "depth") return Value(std::int64_t{depth_});
    if (name == "depth0") return Value(std::int64_t{depth_ - 1});
    if (name == "previtem") {
        return before_ ? *before_ : undefined_hint("there is no previous item");
    }
    if (name == "nextitem") {
        const std::optional<Value>& next = peek();
        return next ? *next : undefined_hint("there is no next item");
    }
    if (name == "cycle" || name == "changed") {
        return make_object(std::make_shared<NativeFunction>(name == "cycle" ? kCycle : kChanged,
                                                            Value(shared_from_this())));
    }
    return {};
}

void Loop::append_repr(Runtime&, TextBuilder& out) {
    out.append(fmt::format("<LoopContext {}/{}>", index0_ + 1, count_all()));
}

Value Loop::call(Runtime&, const CallArguments& arguments) {
    if (!statement_.is_recursive) {
        fail("The loop must have the 'recursive' marker to be called recursively.");
    }
    if (arguments.positional.size() != 1 || !arguments.named.empty()) {
        fail("a recursive loop is called with one iterable");
    }
    return evaluator_.run_recursion(statement_, arguments.positional[0], depth_ + 1);
}

Value Loop::cycle(const CallArguments& arguments) const {
    if (arguments.positional.empty()) fail("no items for cycling given");
    const auto count = static_cast<std::int64_t>(arguments.positional.size());
    return arguments.positional[static_cast<std::size_t>(index0_ % count)];
}

bool Loop::has_changed(const CallArguments& arguments) {
    Value now = evaluator_.heap().tuple(arguments.positional);
    if (last_changed_ && equal(evaluator_.meter(), *last_changed_, now)) return false;
    if (is_open_) last_changed_ = std::move(now);
    return true;
}

}  // namespace pagoda::text::jinja
