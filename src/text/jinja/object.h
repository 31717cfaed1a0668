#pragma once
// Objects: values with behaviour of their own, such as ranges, namespaces and bound methods. Shared
// by the values that hold them; owned by one render and its thread.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/heap.h"
#include "text/jinja/native.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

class Object : public std::enable_shared_from_this<Object> {
  public:
    Object() = default;
    virtual ~Object() = default;
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;

    [[nodiscard]] virtual std::string_view type_name() const = 0;
    [[nodiscard]] virtual std::optional<Value> attribute(Runtime& runtime, std::string_view name);
    [[nodiscard]] virtual bool is_callable() const { return false; }
    [[nodiscard]] virtual Value call(Runtime& runtime, const CallArguments& arguments);
    [[nodiscard]] virtual bool is_iterable() const { return false; }
    // All (remaining) items as a sequence. REQUIRES: is_iterable().
    [[nodiscard]] virtual Value items(Runtime& runtime);
    [[nodiscard]] virtual std::optional<std::int64_t> length() const { return {}; }
    [[nodiscard]] virtual bool is_true() const { return length().value_or(1) != 0; }
    virtual void append_repr(Runtime& runtime, TextBuilder& out);
    [[nodiscard]] virtual bool equals(Meter& meter, const Object& other) const;
    [[nodiscard]] virtual int depth() const { return 1; }
};

// Fails when the object nests too deeply.
[[nodiscard]] Value make_object(std::shared_ptr<Object> object);

// range(): numbers that are made when they are asked for.
class Range final : public Object {
  public:
    static constexpr std::int64_t kMaxLength = 100000;
    // REQUIRES: step is not 0. Fails when it is longer than kMaxLength.
    Range(std::int64_t start, std::int64_t stop, std::int64_t step);
    [[nodiscard]] std::string_view type_name() const override { return "range"; }
    [[nodiscard]] bool is_iterable() const override { return true; }
    [[nodiscard]] Value items(Runtime& runtime) override;
    [[nodiscard]] std::optional<std::int64_t> length() const override { return length_; }
    void append_repr(Runtime& runtime, TextBuilder& out) override;
    [[nodiscard]] bool equals(Meter& meter, const Object& other) const override;
    [[nodiscard]] std::int64_t at(std::int64_t index) const { return start_ + index * step_; }
    [[nodiscard]] bool contains(std::int64_t number) const;
    // A slice. REQUIRES: places between -1 and the length, a step that is not 0.
    [[nodiscard]] std::shared_ptr<Range> part(std::int64_t start, std::int64_t stop,
                                              std::int64_t step) const;

  private:
    std::int64_t start_, stop_, step_, length_;
};

// dict.keys(), values() and items().
class DictView final : public Object {
  public:
    enum class Part { kKeys, kValues, kItems };
    DictView(Value dict, Part part) : dict_(std::move(dict)), part_(part) {}
    [[nodiscard]] std::string_view type_name() const override;
    [[nodiscard]] bool is_iterable() const override { return true; }
    [[nodiscard]] Value items(Runtime& runtime) override;
    [[nodiscard]] std::optional<std::int64_t> length() const override;
    void append_repr(Runtime& runtime, TextBuilder& out) override;
    [[nodiscard]] int depth() const override { return dict_.depth() + 1; }

  private:
    Value dict_;
    Part part_;
};

// What map, select and their kind give: it can be gone through once, has no length and is true.
class Generator final : public Object {
  public:
    Generator(Value sequence, std::string_view name) : rest_(std::move(sequence)), name_(name) {}
    [[nodiscard]] std::string_view type_name() const override { return "generator"; }
    [[nodiscard]] bool is_iterable() const override { return true; }
    [[nodiscard]] Value items(Runtime& runtime) override;
    // The next item alone, or nothing at the end.
    [[nodiscard]] std::optional<Value> next();
    void append_repr(Runtime& runtime, TextBuilder& out) override;
    [[nodiscard]] int depth() const override { return rest_.depth() + 1; }

  private:
    Value rest_;
    std::size_t at_ = 0;
    std::string_view name_;
};

[[nodiscard]] Value make_generator(Runtime& runtime, std::vector<Value> items,
                                   std::string_view name);

class Namespace final : public Object, public Changeable {
  public:
    explicit Namespace(Heap& heap) : Changeable(heap) {}
    ~Namespace() override;
    [[nodiscard]] std::string_view type_name() const override { return "Namespace"; }
    [[nodiscard]] std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
    void append_repr(Runtime& runtime, TextBuilder& out) override;
    void set(std::string_view name, Value value);

  protected:
    void surrender(std::vector<Value>& into) override;

  private:
    std::vector<std::pair<std::string, Value>> members_;
    Charge charge_{&heap_, 0};
};

// A native function, or a method with the value it belongs to.
class NativeFunction final : public Object {
  public:
    NativeFunction(const NativeSpec& spec, Value self) : spec_(spec), self_(std::move(self)) {}
    [[nodiscard]] std::string_view type_name() const override { return "function"; }
    [[nodiscard]] bool is_callable() const override { return true; }
    [[nodiscard]] Value call(Runtime& runtime, const CallArguments& arguments) override;
    void append_repr(Runtime& runtime, TextBuilder& out) override;
    [[nodiscard]] int depth() const override { return self_.depth() + 1; }

  private:
    const NativeSpec& spec_;  // a row of a constant table
    Value self_;
};

// cycler('a', 'b')
class Cycler final : public Object {
  public:
    explicit Cycler(Value items) : items_(std::move(items)) {}
    [[nodiscard]] std::string_view type_name() const override { return "Cycler"; }
    [[nodiscard]] std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
    [[nodiscard]] int depth() const override { return items_.depth() + 1; }
    [[nodiscard]] const Value& current() const { return items_.items()[at_]; }
    [[nodiscard]] Value next();
    void reset() { at_ = 0; }

  private:
    Value items_;  // a tuple with at least one item
    std::size_t at_ = 0;
};

// joiner(', '): nothing at the first call, the separator from then on.
class Joiner final : public Object {
  public:
    explicit Joiner(Value separator) : separator_(std::move(separator)) {}
    [[nodiscard]] std::string_view type_name() const override { return "Joiner"; }
    [[nodiscard]] bool is_callable() const override { return true; }
    [[nodiscard]] Value call(Runtime& runtime, const CallArguments& arguments) override;
    [[nodiscard]] int depth() const override { return separator_.depth() + 1; }

  private:
    Value separator_;
    bool is_used_ = false;
};

}  // namespace pagoda::text::jinja
