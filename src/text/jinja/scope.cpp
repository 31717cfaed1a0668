#include "text/jinja/scope.h"

namespace pagoda::text::jinja {

Scope::~Scope() {
    std::vector<Value> values;
    surrender(values);
    if (!values.empty()) heap_.dispose(std::move(values));
}

void Scope::surrender(std::vector<Value>& into) {
    for (auto& [symbol, value] : variables_) {
        if (value.is_compound()) into.push_back(std::move(value));
    }
    variables_.clear();
}

void Scope::set(Symbol symbol, Value value) {
    for (auto& [known, old] : variables_) {
        if (known != symbol) continue;
        // The old value may own much: it goes only after the new one stands.
        std::swap(old, value);
        return;
    }
    charge_.grow(sizeof(value) + sizeof(symbol));
    variables_.emplace_back(symbol, std::move(value));
}

const Value* Scope::find(Symbol symbol) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent_.get()) {
        for (const auto& [known, value] : scope->variables_) {
            if (known == symbol) return &value;
        }
    }
    return nullptr;
}

}  // namespace pagoda::text::jinja
