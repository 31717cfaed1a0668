#include <algorithm>

#include <fmt/core.h>

#include "base/clock.h"
#include "text/jinja/evaluator.h"
#include "text/jinja/failure.h"
#include "text/jinja/operations.h"
#include "text/jinja/strftime.h"

namespace pagoda::text::jinja {

namespace {

// Levels of the tree per level of calls: a macro's call passes through some statements and
// expressions.
constexpr int kLevelsPerCall = 10;

}  // namespace

Evaluator::Evaluator(const Program& program, const RenderInput& input)
    : Runtime(Meter(input.limits.max_steps, input.limits.max_time), input.limits.max_bytes,
              input.limits.max_depth * kLevelsPerCall,
              input.date_now.empty() ? local_time(base::system_clock().unix_seconds())
                                     : input.date_now),
      program_(program),
      variables_(program.tree().symbols.size(), nullptr),
      loop_(symbol_named("loop")),
      caller_(symbol_named("caller")),
      varargs_(symbol_named("varargs")),
      kwargs_(symbol_named("kwargs")) {
    const auto& symbols = program.tree().symbols;
    for (const auto& [name, value] : input.variables) {
        const auto found = std::find(symbols.begin(), symbols.end(), name);
        if (found == symbols.end()) continue;
        variables_[static_cast<std::size_t>(found - symbols.begin())] = &value;
    }
}

Evaluator::~Evaluator() = default;

Symbol Evaluator::symbol_named(std::string_view name) const {
    const auto& symbols = program_.tree().symbols;
    const auto found = std::find(symbols.begin(), symbols.end(), name);
    return found == symbols.end() ? kNoSymbol : static_cast<Symbol>(found - symbols.begin());
}

std::string Evaluator::run() {
    scope_ = std::make_shared<Scope>(heap(), nullptr);
    Captured output(*this);
    static_cast<void>(exec(program_.tree().body));
    return output.take();
}

void Evaluator::write(std::string_view text) {
    meter().tick_bytes(text.size());
    output_->charge.grow(text.size());
    output_->text.append(text);
}

Evaluator::Flow Evaluator::exec(const Body& body) {
    for (const StmtPtr& statement : body) {
        const Flow flow = exec(*statement);
        if (flow != Flow::kNext) return flow;
    }
    return Flow::kNext;
}

Evaluator::Flow Evaluator::exec(const Stmt& statement) {
    const Level level(*this);
    tick();
    line_ = statement.line;
    switch (statement.kind) {
        case StmtKind::kOutput: {
            const auto& output = static_cast<const OutputStmt&>(statement);
            if (output.expr == nullptr) {
                write(output.text);
            } else {
                const Value value = eval(*output.expr);
                write(value.is_text() ? value.view() : std::string_view(to_string(*this, value)));
            }
            return Flow::kNext;
        }
        case StmtKind::kFor:
            return exec_for(static_cast<const ForStmt&>(statement));
        case StmtKind::kIf:
            return exec_if(static_cast<const IfStmt&>(statement));
        case StmtKind::kSet: {
            const auto& set = static_cast<const SetStmt&>(statement);
            assign(set.target, eval(*set.value));
            return Flow::kNext;
        }
        case StmtKind::kSetBlock:
        case StmtKind::kFilterBlock:
            return exec_capture(static_cast<const CaptureStmt&>(statement));
        case StmtKind::kMacro:
            exec_macro(static_cast<const MacroStmt&>(statement));
            return Flow::kNext;
        case StmtKind::kCallBlock:
            exec_call_block(static_cast<const CallBlockStmt&>(statement));
            return Flow::kNext;
        case StmtKind::kWith:
            return exec_with(static_cast<const WithStmt&>(statement));
        case StmtKind::kScope: {
            const InScope scope(*this);
            return exec(static_cast<const ScopeStmt&>(statement).body);
        }
        case StmtKind::kBreak:
            return Flow::kBreak;
        case StmtKind::kContinue:
            return Flow::kContinue;
    }
    return Flow::kNext;
}

Evaluator::Flow Evaluator::exec_if(const IfStmt& statement) {
    for (const IfStmt::Branch& branch : statement.branches) {
        if (is_true(eval(*branch.test))) return exec(branch.body);
    }
    return exec(statement.otherwise);
}

Evaluator::Flow Evaluator::exec_capture(const CaptureStmt& statement) {
    Value text;
    {
        const InScope scope(*this);
        Captured output(*this);
        const Flow flow = exec(statement.body);
        if (flow != Flow::kNext) return flow;
        text = heap().text(output.take());
    }
    if (statement.filter != nullptr) {
        text = eval_filter(static_cast<const FilterExpr&>(*statement.filter), &text);
    }
    if (statement.kind == StmtKind::kSetBlock) {
        assign(statement.target, text);
    } else {
        write(to_string(*this, text));
    }
    return Flow::kNext;
}

Evaluator::Flow Evaluator::exec_with(const WithStmt& statement) {
    // All values are computed outside, before any name is bound.
    std::vector<Value> values;
    values.reserve(statement.bindings.size());
    for (const auto& [target, expr] : statement.bindings) values.push_back(eval(*expr));
    const InScope scope(*this);
    for (std::size_t at = 0; at < values.size(); ++at) {
        assign(statement.bindings[at].first, values[at]);
    }
    return exec(statement.body);
}

void Evaluator::assign(const Target& target, const Value& value) {
    if (target.is_tuple) return unpack(target, value);
    if (target.attribute.empty()) return scope_->set(target.symbol, value);
    const Value* const owner = scope_->find(target.symbol);
    auto* const space = owner != nullptr && owner->is_object()
                            ? dynamic_cast<Namespace*>(&owner->object())
                            : nullptr;
    if (space == nullptr) fail("cannot assign attribute on non-namespace object");
    space->set(target.attribute, value);
}

void Evaluator::unpack(const Target& target, const Value& value) {
    const Value sequence = to_sequence(*this, value);
    const std::size_t wanted = target.parts.size(), given = sequence.items().size();
    if (given > wanted) fail(fmt::format("too many values to unpack (expected {})", wanted));
    if (given < wanted) {
        fail(fmt::format("not enough values to unpack (expected {}, got {})", wanted, given));
    }
    for (std::size_t at = 0; at < wanted; ++at) assign(target.parts[at], sequence.items()[at]);
}

Evaluator::Flow Evaluator::exec_for(const ForStmt& statement) {
    const Value iterable = eval(*statement.iterable);
    line_ = statement.line;
    return run_loop(statement, iterable, 1);
}

Evaluator::Flow Evaluator::run_loop(const ForStmt& statement, const Value& iterable, int depth) {
    const auto loop = std::make_shared<Loop>(*this, statement, iterable, depth);
    // The loop's items go when it ends, however it ends: the variable may live on in a namespace.
    struct Closer {
        Loop& loop;
        ~Closer() { loop.close(); }
    };
    const Closer closer{*loop};
    // Jinja's rule: the else part runs unless an iteration came to its end.
    bool has_completed = false;
    while (loop->advance()) {
        tick();
        const InScope scope(*this);
        if (loop_ != kNoSymbol) scope_->set(loop_, Value(loop));
        assign(statement.target, loop->current());
        const Flow flow = exec(statement.body);
        if (flow == Flow::kBreak) break;
        has_completed = has_completed || flow == Flow::kNext;
    }
    if (has_completed) return Flow::kNext;
    const InScope scope(*this);
    return exec(statement.otherwise);
}

bool Evaluator::passes_filter(const ForStmt& statement, const Value& item) {
    const InScope scope(*this);
    assign(statement.target, item);
    return is_true(eval(*statement.filter));
}

Value Evaluator::run_recursion(const ForStmt& statement, const Value& iterable, int depth) {
    Captured output(*this);
    static_cast<void>(run_loop(statement, iterable, depth));
    return heap().text(output.take());
}

void Evaluator::exec_macro(const MacroStmt& statement) {
    scope_->set(statement.symbol, make_object(std::make_shared<Macro>(statement, scope_, *this)));
}

void Evaluator::exec_call_block(const CallBlockStmt& statement) {
    const Value callee = eval(*statement.call->callee);
    CallArguments arguments = eval_arguments(statement.call->arguments);
    arguments.named.emplace_back(
        "caller", make_object(std::make_shared<Macro>(*statement.caller, scope_, *this)));
    line_ = statement.line;
    write(to_string(*this, call(callee, arguments)));
}

Value Evaluator::call_macro(const MacroStmt& macro, const ScopePtr& closure,
                            const CallArguments& arguments) {
    const InScope scope(*this, closure);
    bind_parameters(macro, arguments);
    Captured output(*this);
    static_cast<void>(exec(macro.body));
    return heap().text(output.take());
}

void Evaluator::bind_parameters(const MacroStmt& macro, const CallArguments& arguments) {
    const Signature& signature = macro.signature;
    const auto& symbols = program_.tree().symbols;
    std::vector<bool> used(arguments.named.size(), false);
    const std::size_t count = signature.parameters.size();
    for (std::size_t at = 0; at < count; ++at) {
        const Symbol symbol = signature.parameters[at];
        const std::string& name = symbols[static_cast<std::size_t>(symbol)];
        if (at < arguments.positional.size()) {
            scope_->set(symbol, arguments.positional[at]);
            continue;
        }
        const auto found =
            std::find_if(arguments.named.begin(), arguments.named.end(),
                         [&name](const auto& argument) { return argument.first == name; });
        if (found != arguments.named.end()) {
            used[static_cast<std::size_t>(found - arguments.named.begin())] = true;
            scope_->set(symbol, found->second);
        } else if (at + signature.defaults.size() >= count) {
            // A default may use the parameters in front of it.
            scope_->set(symbol, eval(*signature.defaults[at + signature.defaults.size() - count]));
        } else {
            scope_->set(symbol,
                        undefined_hint(fmt::format("parameter '{}' was not provided", name)));
        }
    }
    bind_rest(macro, arguments, used);
}

void Evaluator::bind_rest(const MacroStmt& macro, const CallArguments& arguments,
                          const std::vector<bool>& used) {
    const Signature& signature = macro.signature;
    std::shared_ptr<Dict> rest = heap().new_dict(arguments.named.size());
    Value caller = undefined_hint("No caller defined");
    for (std::size_t at = 0; at < arguments.named.size(); ++at) {
        if (used[at]) continue;
        const auto& [name, value] = arguments.named[at];
        if (name == "caller" && signature.uses_caller) {
            caller = value;
        } else if (signature.uses_kwargs) {
            rest->set(meter(), heap().text(name), value);
        } else {
            fail(fmt::format("macro '{}' takes no keyword argument '{}'", signature.name, name));
        }
    }
    const std::size_t count = signature.parameters.size();
    std::vector<Value> more;
    if (arguments.positional.size() > count) {
        if (!signature.uses_varargs) {
            fail(fmt::format("macro '{}' takes not more than {} argument(s)", signature.name,
                             count));
        }
        more.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(count),
                    arguments.positional.end());
    }
    if (signature.uses_caller) scope_->set(caller_, caller);
    if (signature.uses_kwargs) scope_->set(kwargs_, heap().dict(std::move(rest)));
    if (signature.uses_varargs) scope_->set(varargs_, heap().tuple(std::move(more)));
}

Value Macro::call(Runtime&, const CallArguments& arguments) {
    return evaluator_.call_macro(macro_, closure_, arguments);
}

std::optional<Value> Macro::attribute(Runtime& runtime, std::string_view name) {
    const Signature& signature = macro_.signature;
    if (name == "name") return runtime.heap().text(signature.name);
    if (name == "catch_kwargs") return Value(signature.uses_kwargs);
    if (name == "catch_varargs") return Value(signature.uses_varargs);
    if (name == "caller") return Value(signature.uses_caller);
    if (name != "arguments") return {};
    std::vector<Value> names;
    names.reserve(signature.parameters.size());
    for (const Symbol parameter : signature.parameters) {
        names.push_back(runtime.heap().text(
            evaluator_.program_.tree().symbols[static_cast<std::size_t>(parameter)]));
    }
    return runtime.heap().tuple(std::move(names));
}

void Macro::append_repr(Runtime&, TextBuilder& out) {
    out.append(fmt::format("<Macro {}>", quoted(macro_.signature.name)));
}

}  // namespace pagoda::text::jinja
