#include "text/jinja/heap.h"

#include <algorithm>
#include <limits>

#include <fmt/core.h>
#include <time.h>  // NOLINT: clock_gettime is no part of <ctime>

#include "base/utf8.h"
#include "text/jinja/failure.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

namespace {

constexpr std::int64_t kStepsBetweenChecks = 2048;
constexpr std::size_t kTextOverhead = 96;      // a text's own bookkeeping
constexpr std::size_t kSequenceOverhead = 96;  // a list's
constexpr std::size_t kEntryBytes = 2 * sizeof(Value);

// Processor time of this thread: a busy machine does not make a template fail.
std::chrono::nanoseconds thread_time() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Meter::Meter(std::int64_t max_steps, std::chrono::milliseconds max_time)
    : next_check_(std::min(kStepsBetweenChecks, max_steps)),
      max_steps_(max_steps),
      max_time_(max_time),
      start_(thread_time()) {}

void Meter::check() {
    if (steps_ > max_steps_) {
        fail_limit(fmt::format("the chat template took more than {} steps", max_steps_));
    }
    if (thread_time() - start_ > max_time_) {
        fail_limit(fmt::format("the chat template took more than {} milliseconds of processor time",
                               max_time_.count()));
    }
    next_check_ = std::min(steps_ + kStepsBetweenChecks, max_steps_ + 1);
}

Charge::~Charge() {
    if (heap_ != nullptr) heap_->give_back(bytes_);
}

void Charge::grow(std::size_t bytes) {
    if (heap_ == nullptr) return;
    heap_->take(bytes);
    bytes_ += bytes;
}

Changeable::Changeable(Heap& heap) : heap_(heap), next_(heap.first_) {
    if (next_ != nullptr) next_->previous_ = this;
    heap.first_ = this;
}

Changeable::~Changeable() {
    (previous_ != nullptr ? previous_->next_ : heap_.first_) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
}

Heap::Heap(std::size_t max_bytes, Meter& meter) : max_bytes_(max_bytes), meter_(meter) {}

Heap::~Heap() {
    // What is still linked is held by a cycle: taking all values out breaks every cycle.
    std::vector<Value> values;
    for (Changeable* each = first_; each != nullptr; each = each->next_) each->surrender(values);
    dispose(std::move(values));
    characters_.clear();
}

void Heap::take(std::size_t bytes) {
    require(bytes);
    used_ += bytes;
}

void Heap::require(std::size_t bytes) const {
    if (bytes > max_bytes_ - std::min(used_, max_bytes_)) {
        fail_limit(
            fmt::format("the chat template holds more than {} bytes of text and data", max_bytes_));
    }
}

Charge Heap::charge(std::size_t bytes) {
    take(bytes);
    return Charge(this, bytes);
}

Value Heap::text(std::string bytes, bool is_markup) {
    meter_.tick(1 + static_cast<std::int64_t>(bytes.size() / 1024));
    const bool is_character = bytes.size() == 1 && !is_markup;
    if (is_character) {
        if (characters_.empty()) characters_.resize(256);
        Value& known = characters_[static_cast<unsigned char>(bytes[0])];
        if (known.is_undefined()) known = make_text(std::move(bytes));
        return known;
    }
    auto made = std::make_shared<Text>();
    made->length = count_code_points(bytes);
    made->charge = charge(bytes.size() + kTextOverhead);
    made->bytes = std::move(bytes);
    made->is_markup = is_markup;
    return Value(Value::TextPtr(std::move(made)));
}

Value Heap::sequence(std::vector<Value> items, bool is_tuple) {
    meter_.tick(1 + static_cast<std::int64_t>(items.size() / 16));
    auto made = std::make_shared<Sequence>(
        Sequence{{}, is_tuple, false, 1, charge(items.size() * sizeof(Value) + kSequenceOverhead)});
    for (const Value& item : items) made->depth = std::max(made->depth, item.depth() + 1);
    if (made->depth > kMaxDepth) {
        fail_limit(fmt::format("lists and dictionaries are nested deeper than {}", kMaxDepth));
    }
    made->items = std::move(items);
    return Value(Value::SequencePtr(std::move(made)));
}

Value Heap::group(Value key, Value items) {
    std::vector<Value> pair;
    pair.push_back(std::move(key));
    pair.push_back(std::move(items));
    const Value tuple = sequence(std::move(pair), true);
    auto made = std::make_shared<Sequence>(
        Sequence{tuple.items(), true, true, tuple.depth(), charge(kSequenceOverhead)});
    return Value(Value::SequencePtr(std::move(made)));
}

std::shared_ptr<Dict> Heap::new_dict(std::size_t expected_size) {
    meter_.tick(1 + static_cast<std::int64_t>(expected_size / 16));
    return std::make_shared<Dict>(charge(expected_size * kEntryBytes + kSequenceOverhead));
}

Value Heap::dict(std::shared_ptr<Dict> dict) {
    if (dict->depth() > kMaxDepth) {
        fail_limit(fmt::format("lists and dictionaries are nested deeper than {}", kMaxDepth));
    }
    return Value(Value::DictPtr(std::move(dict)));
}

void Heap::dispose(std::vector<Value> values) noexcept {
    doomed_.push_back(std::move(values));
    if (is_disposing_) return;
    is_disposing_ = true;
    while (!doomed_.empty()) {
        std::vector<Value> next = std::move(doomed_.back());
        doomed_.pop_back();
        next.clear();
    }
    is_disposing_ = false;
}

void TextBuilder::append(std::string_view text) {
    if (bytes_.size() + text.size() > checked_) {
        heap_.require(bytes_.size() + text.size());
        checked_ = bytes_.size() + text.size() + 4096;
    }
    bytes_.append(text);
}

void TextBuilder::fill(std::size_t count, std::string_view text) {
    if (text.empty()) return;
    if (count > std::numeric_limits<std::size_t>::max() / 2 / text.size()) {
        heap_.require(std::numeric_limits<std::size_t>::max() / 2);
    }
    heap_.require(bytes_.size() + count * text.size());
    if (text.size() == 1) {
        bytes_.append(count, text[0]);
        return;
    }
    bytes_.reserve(bytes_.size() + count * text.size());
    for (; count > 0; --count) bytes_.append(text);
}

void TextBuilder::append_code(char32_t code) {
    std::string encoded;
    base::append_utf8(encoded, code);
    append(encoded);
}

}  // namespace pagoda::text::jinja
