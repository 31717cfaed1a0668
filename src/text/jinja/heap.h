#pragma once
// Meter and Heap: the limits of one render. The meter counts work and the processor time of its
// thread; the heap counts the bytes that live values hold and makes them. Both belong to one render
// and its thread; the heap outlives every value that it made.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace pagoda::text::jinja {

class Meter final {
  public:
    Meter(std::int64_t max_steps, std::chrono::milliseconds max_time);
    // Counts work; fails when steps or time are used up.
    void tick(std::int64_t steps = 1) {
        steps_ += steps;
        if (steps_ >= next_check_) check();
    }
    // Work that grows with bytes read or written.
    void tick_bytes(std::size_t bytes) { tick(static_cast<std::int64_t>(bytes / 1024)); }

  private:
    void check();
    std::int64_t steps_ = 0;
    std::int64_t next_check_;
    std::int64_t max_steps_;
    std::chrono::milliseconds max_time_;
    std::chrono::nanoseconds start_;  // in this thread's processor time
};

// Something that may change after it was made, and so may be part of a cycle or of a chain of any
// length (namespaces, variable scopes). The heap breaks such cycles when the render ends, and
// destroys what they held without recursion.
class Changeable {
  public:
    Changeable(const Changeable&) = delete;
    Changeable& operator=(const Changeable&) = delete;

  protected:
    explicit Changeable(Heap& heap);
    virtual ~Changeable();
    // Moves all values out, to be destroyed by the heap.
    virtual void surrender(std::vector<Value>& into) = 0;
    Heap& heap_;  // outlives this

  private:
    friend class Heap;
    Changeable* previous_ = nullptr;
    Changeable* next_ = nullptr;
};

class Heap final {
  public:
    static constexpr int kMaxDepth = 256;  // containers inside containers

    Heap(std::size_t max_bytes, Meter& meter);
    ~Heap();
    Heap(const Heap&) = delete;
    Heap& operator=(const Heap&) = delete;

    void take(std::size_t bytes);
    void give_back(std::size_t bytes) noexcept { used_ -= bytes; }
    // Fails when so many more bytes would not fit; takes nothing.
    void require(std::size_t bytes) const;

    [[nodiscard]] Value text(std::string bytes, bool is_markup = false);
    [[nodiscard]] Value text(std::string_view bytes) { return text(std::string(bytes)); }
    [[nodiscard]] Value text(const char* bytes) { return text(std::string(bytes)); }
    [[nodiscard]] Value list(std::vector<Value> items) { return sequence(std::move(items), false); }
    [[nodiscard]] Value tuple(std::vector<Value> items) { return sequence(std::move(items), true); }
    [[nodiscard]] Value group(Value key, Value items);
    [[nodiscard]] std::shared_ptr<Dict> new_dict(std::size_t expected_size);
    // Fails when the finished dictionary is nested too deeply.
    [[nodiscard]] Value dict(std::shared_ptr<Dict> dict);
    [[nodiscard]] Charge charge(std::size_t bytes);

    // Destroys values without recursing from one changeable thing into the next.
    void dispose(std::vector<Value> values) noexcept;

  private:
    friend class Changeable;
    [[nodiscard]] Value sequence(std::vector<Value> items, bool is_tuple);

    std::size_t max_bytes_;
    std::size_t used_ = 0;
    Meter& meter_;  // outlives the heap
    Changeable* first_ = nullptr;
    std::vector<std::vector<Value>> doomed_;
    bool is_disposing_ = false;
    std::vector<Value> characters_;  // the one-byte texts, made when first used
};

// A string under construction, held to what the heap has room for.
class TextBuilder final {
  public:
    explicit TextBuilder(Heap& heap) : heap_(heap) {}
    void append(std::string_view text);
    void append(char character) { append(std::string_view(&character, 1)); }
    void fill(std::size_t count, std::string_view text);
    void append_code(char32_t code);
    [[nodiscard]] const std::string& str() const { return bytes_; }
    [[nodiscard]] std::string take() { return std::move(bytes_); }

  private:
    Heap& heap_;
    std::string bytes_;
    std::size_t checked_ = 0;
};

}  // namespace pagoda::text::jinja
