#pragma once
// The syntax tree of a compiled template. Immutable once parsed and shared by concurrent renders.
// Chains of operators of one rank are one flat node, so that a long concatenation does not nest.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace pagoda::text::jinja {

struct NativeSpec;

// A name of the template, as an index into Program::symbols.
using Symbol = int;
constexpr Symbol kNoSymbol = -1;

enum class ExprKind {
    kConstant,
    kName,
    kTuple,
    kList,
    kDict,
    kNot,
    kNegate,
    kPositive,
    kAnd,
    kOr,
    kCompare,
    kArithmetic,
    kConcat,
    kCondition,
    kAttribute,
    kItem,
    kSlice,
    kCall,
    kFilter,
    kTest,
};

struct Expr {
    Expr(ExprKind expr_kind, int at_line) : kind(expr_kind), line(at_line) {}
    virtual ~Expr() = default;
    Expr(const Expr&) = delete;
    Expr& operator=(const Expr&) = delete;
    const ExprKind kind;
    const int line;
    int height = 1;  // levels of nodes below and including this one
};
using ExprPtr = std::unique_ptr<Expr>;

struct ConstantExpr final : Expr {
    ConstantExpr(int at_line, Value constant)
        : Expr(ExprKind::kConstant, at_line), value(std::move(constant)) {}
    Value value;
};

struct NameExpr final : Expr {
    NameExpr(int at_line, Symbol name) : Expr(ExprKind::kName, at_line), symbol(name) {}
    Symbol symbol;
};

// kTuple, kList, kAnd, kOr, kConcat; and kNot, kNegate, kPositive with one operand.
struct OperandsExpr final : Expr {
    using Expr::Expr;
    std::vector<ExprPtr> operands;
};

struct DictExpr final : Expr {
    explicit DictExpr(int at_line) : Expr(ExprKind::kDict, at_line) {}
    std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};

enum class Operator {
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kFloorDivide,
    kModulo,
    kPower,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kIn,
    kNotIn,
};

// kCompare (each neighbour compared with the next) and kArithmetic (from left to right).
struct ChainExpr final : Expr {
    using Expr::Expr;
    ExprPtr first;
    std::vector<std::pair<Operator, ExprPtr>> rest;
};

struct ConditionExpr final : Expr {
    explicit ConditionExpr(int at_line) : Expr(ExprKind::kCondition, at_line) {}
    ExprPtr test, then, otherwise;  // otherwise may be null
};

struct AttributeExpr final : Expr {
    explicit AttributeExpr(int at_line) : Expr(ExprKind::kAttribute, at_line) {}
    ExprPtr object;
    std::string name;
};

struct ItemExpr final : Expr {
    explicit ItemExpr(int at_line) : Expr(ExprKind::kItem, at_line) {}
    ExprPtr object, key;
};

struct SliceExpr final : Expr {
    explicit SliceExpr(int at_line) : Expr(ExprKind::kSlice, at_line) {}
    ExprPtr object, start, stop, step;  // all but the object may be null
};

struct ArgumentExprs {
    std::vector<ExprPtr> positional;
    std::vector<std::pair<std::string, ExprPtr>> named;
    ExprPtr star, double_star;  // may be null
};

struct CallExpr final : Expr {
    explicit CallExpr(int at_line) : Expr(ExprKind::kCall, at_line) {}
    ExprPtr callee;
    ArgumentExprs arguments;
};

struct FilterExpr final : Expr {
    explicit FilterExpr(int at_line) : Expr(ExprKind::kFilter, at_line) {}
    ExprPtr subject;  // null where a block gives its text
    const NativeSpec* filter = nullptr;
    ArgumentExprs arguments;
};

struct TestExpr final : Expr {
    explicit TestExpr(int at_line) : Expr(ExprKind::kTest, at_line) {}
    ExprPtr subject;
    const NativeSpec* test = nullptr;
    bool is_negated = false;
    ArgumentExprs arguments;
};

// What a for or set statement assigns to.
struct Target {
    Symbol symbol = kNoSymbol;
    std::string attribute;  // of the namespace `symbol`; empty: the variable itself
    bool is_tuple = false;  // then parts, and symbol is unused
    std::vector<Target> parts;
};

enum class StmtKind {
    kOutput,
    kFor,
    kIf,
    kSet,
    kSetBlock,
    kMacro,
    kCallBlock,
    kFilterBlock,
    kWith,
    kScope,
    kBreak,
    kContinue,
};

struct Stmt {
    Stmt(StmtKind stmt_kind, int at_line) : kind(stmt_kind), line(at_line) {}
    virtual ~Stmt() = default;
    Stmt(const Stmt&) = delete;
    Stmt& operator=(const Stmt&) = delete;
    const StmtKind kind;
    const int line;
};
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

struct OutputStmt final : Stmt {
    explicit OutputStmt(int at_line) : Stmt(StmtKind::kOutput, at_line) {}
    std::string text;  // literal text, when there is no expression
    ExprPtr expr;
};

struct ForStmt final : Stmt {
    explicit ForStmt(int at_line) : Stmt(StmtKind::kFor, at_line) {}
    Target target;
    ExprPtr iterable, filter;  // filter may be null
    bool is_recursive = false;
    Body body, otherwise;
};

struct IfStmt final : Stmt {
    explicit IfStmt(int at_line) : Stmt(StmtKind::kIf, at_line) {}
    struct Branch {
        ExprPtr test;
        Body body;
    };
    std::vector<Branch> branches;
    Body otherwise;
};

struct SetStmt final : Stmt {
    explicit SetStmt(int at_line) : Stmt(StmtKind::kSet, at_line) {}
    Target target;
    ExprPtr value;
};

// {% set x %}...{% endset %} and {% filter f %}...{% endfilter %}
struct CaptureStmt final : Stmt {
    using Stmt::Stmt;
    Target target;   // of a set block
    ExprPtr filter;  // a chain of FilterExpr whose innermost subject is null; may be null
    Body body;
};

struct Signature {
    std::string name;
    std::vector<Symbol> parameters;
    std::vector<ExprPtr> defaults;  // of the last parameters
    bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};

struct MacroStmt final : Stmt {
    explicit MacroStmt(int at_line) : Stmt(StmtKind::kMacro, at_line) {}
    Symbol symbol = kNoSymbol;
    Signature signature;
    Body body;
};

struct CallBlockStmt final : Stmt {
    explicit CallBlockStmt(int at_line) : Stmt(StmtKind::kCallBlock, at_line) {}
    std::unique_ptr<CallExpr> call;
    std::unique_ptr<MacroStmt> caller;
};

struct WithStmt final : Stmt {
    explicit WithStmt(int at_line) : Stmt(StmtKind::kWith, at_line) {}
    std::vector<std::pair<Target, ExprPtr>> bindings;
    Body body;
};

// {% generation %} and {% autoescape false %}: a scope of its own.
struct ScopeStmt final : Stmt {
    explicit ScopeStmt(int at_line) : Stmt(StmtKind::kScope, at_line) {}
    Body body;
};

struct JumpStmt final : Stmt {
    using Stmt::Stmt;
};

}  // namespace pagoda::text::jinja
