#pragma once
// Evaluator: one render of a program, by walking its tree. Used once, by one thread; throws
// Failure.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/object.h"
#include "text/jinja/program.h"
#include "text/jinja/runtime.h"
#include "text/jinja/scope.h"

namespace pagoda::text::jinja {

class Evaluator final : public Runtime {
  public:
    Evaluator(const Program& program, const RenderInput& input);  // both outlive it
    ~Evaluator();
    [[nodiscard]] std::string run();
    // Of the statement or call that was being evaluated last.
    [[nodiscard]] int current_line() const { return line_; }

  private:
    friend class Macro;
    friend class Loop;
    enum class Flow { kNext, kBreak, kContinue };
    using ScopePtr = std::shared_ptr<Scope>;  // shared by running blocks and macros
    // Where text goes: counted against the heap until it is taken.
    struct Output {
        std::string text;
        Charge charge;
    };
    class InScope;   // a block's own scope, for as long as it lives
    class Captured;  // output into a text of its own, for as long as it lives

    // Statements (eval_statement.cpp).
    [[nodiscard]] Flow exec(const Body& body);
    [[nodiscard]] Flow exec(const Stmt& statement);
    [[nodiscard]] Flow exec_for(const ForStmt& statement);
    [[nodiscard]] Flow exec_if(const IfStmt& statement);
    [[nodiscard]] Flow exec_capture(const CaptureStmt& statement);
    [[nodiscard]] Flow exec_with(const WithStmt& statement);
    void exec_macro(const MacroStmt& statement);
    void exec_call_block(const CallBlockStmt& statement);
    [[nodiscard]] Flow run_loop(const ForStmt& statement, const Value& iterable, int depth);
    [[nodiscard]] bool passes_filter(const ForStmt& statement, const Value& item);
    void assign(const Target& target, const Value& value);
    void unpack(const Target& target, const Value& value);
    void write(std::string_view text);
    [[nodiscard]] Value run_recursion(const ForStmt& statement, const Value& iterable, int depth);
    [[nodiscard]] Value call_macro(const MacroStmt& macro, const ScopePtr& closure,
                                   const CallArguments& arguments);
    void bind_parameters(const MacroStmt& macro, const CallArguments& arguments);
    void bind_rest(const MacroStmt& macro, const CallArguments& arguments,
                   const std::vector<bool>& used);
    [[nodiscard]] Symbol symbol_named(std::string_view name) const;

    // Expressions (eval_expression.cpp).
    [[nodiscard]] Value eval(const Expr& expr);
    [[nodiscard]] Value eval_name(const NameExpr& expr);
    [[nodiscard]] Value eval_sequence(const OperandsExpr& expr);
    [[nodiscard]] Value eval_dict(const DictExpr& expr);
    [[nodiscard]] Value eval_logic(const OperandsExpr& expr);
    [[nodiscard]] Value eval_concat(const OperandsExpr& expr);
    [[nodiscard]] Value eval_compare(const ChainExpr& expr);
    [[nodiscard]] Value eval_arithmetic(const ChainExpr& expr);
    [[nodiscard]] Value eval_condition(const ConditionExpr& expr);
    [[nodiscard]] Value eval_slice(const SliceExpr& expr);
    [[nodiscard]] Value eval_call(const CallExpr& expr);
    [[nodiscard]] Value eval_filter(const FilterExpr& expr, const Value* innermost);
    [[nodiscard]] Value eval_test(const TestExpr& expr);
    [[nodiscard]] CallArguments eval_arguments(const ArgumentExprs& exprs);

    const Program& program_;
    ScopePtr scope_;
    Output* output_ = nullptr;             // the innermost
    std::vector<const Value*> variables_;  // of the input, by symbol; null where it has none
    int line_ = 0;
    Symbol loop_, caller_, varargs_, kwargs_;  // names with a meaning, kNoSymbol when never used
};

class Evaluator::InScope final {
  public:
    explicit InScope(Evaluator& evaluator) : InScope(evaluator, evaluator.scope_) {}
    InScope(Evaluator& evaluator, const ScopePtr& parent)
        : evaluator_(evaluator), outer_(std::move(evaluator.scope_)) {
        evaluator_.scope_ = std::make_shared<Scope>(evaluator.heap(), parent ? parent : outer_);
    }
    ~InScope() { evaluator_.scope_ = std::move(outer_); }
    InScope(const InScope&) = delete;
    InScope& operator=(const InScope&) = delete;

  private:
    Evaluator& evaluator_;  // outlives this
    ScopePtr outer_;
};

class Evaluator::Captured final {
  public:
    explicit Captured(Evaluator& evaluator)
        : evaluator_(evaluator),
          outer_(evaluator.output_),
          output_{{}, Charge(&evaluator.heap(), 0)} {
        evaluator_.output_ = &output_;
    }
    ~Captured() { evaluator_.output_ = outer_; }
    Captured(const Captured&) = delete;
    Captured& operator=(const Captured&) = delete;
    [[nodiscard]] std::string take() { return std::move(output_.text); }

  private:
    Evaluator& evaluator_;  // outlives this
    Output* outer_;         // outlives this
    Output output_;
};

// A macro, or the body of a call block, with the scope it was defined in.
class Macro final : public Object {
  public:
    Macro(const MacroStmt& macro, std::shared_ptr<Scope> closure, Evaluator& evaluator)
        : macro_(macro), closure_(std::move(closure)), evaluator_(evaluator) {}
    [[nodiscard]] std::string_view type_name() const override { return "Macro"; }
    [[nodiscard]] bool is_callable() const override { return true; }
    [[nodiscard]] Value call(Runtime& runtime, const CallArguments& arguments) override;
    [[nodiscard]] std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
    void append_repr(Runtime& runtime, TextBuilder& out) override;

  private:
    const MacroStmt& macro_;          // part of the program
    std::shared_ptr<Scope> closure_;  // shared with the block that defined it
    Evaluator& evaluator_;            // outlives its values
};

// The `loop` variable, which also drives the loop: items are fetched, and a filter asked, only when
// they are needed, as the body may change what the filter sees.
class Loop final : public Object {
  public:
    Loop(Evaluator& evaluator, const ForStmt& statement, const Value& iterable, int depth);
    [[nodiscard]] std::string_view type_name() const override { return "LoopContext"; }
    [[nodiscard]] bool is_callable() const override { return true; }
    [[nodiscard]] std::optional<std::int64_t> length() const override { return 1; }
    void append_repr(Runtime& runtime, TextBuilder& out) override;
    [[nodiscard]] Value call(Runtime& runtime, const CallArguments& arguments) override;
    [[nodiscard]] std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;

    // Moves to the next item; false at the end.
    [[nodiscard]] bool advance();
    [[nodiscard]] const Value& current() const { return *current_; }
    // Lets go of the items: the loop is over.
    void close();
    [[nodiscard]] Value cycle(const CallArguments& arguments) const;
    [[nodiscard]] bool has_changed(const CallArguments& arguments);

  private:
    [[nodiscard]] std::optional<Value> fetch();
    [[nodiscard]] const std::optional<Value>& peek();
    [[nodiscard]] std::int64_t count_all();

    Evaluator& evaluator_;         // outlives its values
    const ForStmt& statement_;     // part of the program
    Value items_;                  // a sequence
    std::size_t next_ = 0;         // the place of the next item to fetch
    std::vector<Value> filtered_;  // fetched ahead to know the length, last first
    std::optional<std::int64_t> length_;
    bool has_peeked_ = false;
    std::optional<Value> before_, current_, after_;
    std::optional<Value> last_changed_;
    std::int64_t index0_ = -1;
    int depth_;  // from 1
    bool is_open_ = true;
};

}  // namespace pagoda::text::jinja
