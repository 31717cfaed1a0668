#pragma once
// Scope: the variables of one block of a running template. Blocks see those around them; what they
// set stays inside. Shared by the running block and the macros defined in it.

#include <memory>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/heap.h"
#include "text/jinja/value.h"

namespace pagoda::text::jinja {

class Scope final : public Changeable {
  public:
    Scope(Heap& heap, std::shared_ptr<Scope> parent)
        : Changeable(heap), parent_(std::move(parent)) {}
    ~Scope() override;

    void set(Symbol symbol, Value value);
    // In this scope or one around it; null when there is none.
    [[nodiscard]] const Value* find(Symbol symbol) const;

  protected:
    void surrender(std::vector<Value>& into) override;

  private:
    std::shared_ptr<Scope> parent_;  // shared with the block around and its macros
    std::vector<std::pair<Symbol, Value>> variables_;
    Charge charge_{&heap_, 0};
};

}  // namespace pagoda::text::jinja
