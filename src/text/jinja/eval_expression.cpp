#include <fmt/core.h>

#include "text/jinja/evaluator.h"
#include "text/jinja/failure.h"
#include "text/jinja/operations.h"

namespace pagoda::text::jinja {

Value Evaluator::eval(const Expr& expr) {
    const Level level(*this);
    tick();
    switch (expr.kind) {
        case ExprKind::kConstant:
            return static_cast<const ConstantExpr&>(expr).value;
        case ExprKind::kName:
            return eval_name(static_cast<const NameExpr&>(expr));
        case ExprKind::kTuple:
        case ExprKind::kList:
            return eval_sequence(static_cast<const OperandsExpr&>(expr));
        case ExprKind::kDict:
            return eval_dict(static_cast<const DictExpr&>(expr));
        case ExprKind::kNot:
            return Value(!is_true(eval(*static_cast<const OperandsExpr&>(expr).operands[0])));
        case ExprKind::kNegate:
            return negate(eval(*static_cast<const OperandsExpr&>(expr).operands[0]));
        case ExprKind::kPositive:
            return positive(eval(*static_cast<const OperandsExpr&>(expr).operands[0]));
        case ExprKind::kAnd:
        case ExprKind::kOr:
            return eval_logic(static_cast<const OperandsExpr&>(expr));
        case ExprKind::kCompare:
            return eval_compare(static_cast<const ChainExpr&>(expr));
        case ExprKind::kArithmetic:
            return eval_arithmetic(static_cast<const ChainExpr&>(expr));
        case ExprKind::kConcat:
            return eval_concat(static_cast<const OperandsExpr&>(expr));
        case ExprKind::kCondition:
            return eval_condition(static_cast<const ConditionExpr&>(expr));
        case ExprKind::kAttribute: {
            const auto& attribute = static_cast<const AttributeExpr&>(expr);
            const Value object = eval(*attribute.object);
            line_ = expr.line;
            return get_attribute(*this, object, attribute.name);
        }
        case ExprKind::kItem: {
            const auto& item = static_cast<const ItemExpr&>(expr);
            const Value object = eval(*item.object);
            const Value key = eval(*item.key);
            line_ = expr.line;
            return get_item(*this, object, key);
        }
        case ExprKind::kSlice:
            return eval_slice(static_cast<const SliceExpr&>(expr));
        case ExprKind::kCall:
            return eval_call(static_cast<const CallExpr&>(expr));
        case ExprKind::kFilter:
            return eval_filter(static_cast<const FilterExpr&>(expr), nullptr);
        case ExprKind::kTest:
            return eval_test(static_cast<const TestExpr&>(expr));
    }
    return {};
}

Value Evaluator::eval_name(const NameExpr& expr) {
    if (const Value* local = scope_->find(expr.symbol)) return *local;
    const auto symbol = static_cast<std::size_t>(expr.symbol);
    if (variables_[symbol] != nullptr) return *variables_[symbol];
    const std::string& name = program_.tree().symbols[symbol];
    if (const NativeSpec* global = find_global(name)) {
        return make_object(std::make_shared<NativeFunction>(*global, Value()));
    }
    return undefined_name(name);
}

Value Evaluator::eval_sequence(const OperandsExpr& expr) {
    std::vector<Value> items;
    items.reserve(expr.operands.size());
    for (const ExprPtr& operand : expr.operands) items.push_back(eval(*operand));
    return expr.kind == ExprKind::kTuple ? heap().tuple(std::move(items))
                                         : heap().list(std::move(items));
}

Value Evaluator::eval_dict(const DictExpr& expr) {
    auto dict = heap().new_dict(expr.entries.size());
    for (const auto& [key_expr, value_expr] : expr.entries) {
        Value key = eval(*key_expr);
        Value value = eval(*value_expr);
        dict->set(meter(), std::move(key), std::move(value));
    }
    return heap().dict(std::move(dict));
}

// Gives the operand that decided, as Python does.
Value Evaluator::eval_logic(const OperandsExpr& expr) {
    const bool stops_at = expr.kind == ExprKind::kOr;
    Value value;
    for (const ExprPtr& operand : expr.operands) {
        value = eval(*operand);
        if (is_true(value) == stops_at) break;
    }
    return value;
}

Value Evaluator::eval_concat(const OperandsExpr& expr) {
    TextBuilder out(heap());
    for (const ExprPtr& operand : expr.operands) append_string(*this, out, eval(*operand));
    return heap().text(out.take());
}

Value Evaluator::eval_compare(const ChainExpr& expr) {
    Value left = eval(*expr.first);
    for (const auto& [op, operand] : expr.rest) {
        Value right = eval(*operand);
        line_ = expr.line;
        if (!compare(*this, op, left, right)) return Value(false);
        left = std::move(right);
    }
    return Value(true);
}

Value Evaluator::eval_arithmetic(const ChainExpr& expr) {
    Value left = eval(*expr.first);
    for (const auto& [op, operand] : expr.rest) {
        const Value right = eval(*operand);
        line_ = expr.line;
        left = arithmetic(*this, op, left, right);
    }
    return left;
}

Value Evaluator::eval_condition(const ConditionExpr& expr) {
    if (is_true(eval(*expr.test))) return eval(*expr.then);
    if (expr.otherwise != nullptr) return eval(*expr.otherwise);
    return undefined_hint(
        fmt::format("the inline if-expression on line {} evaluated to false and no else section "
                    "was defined",
                    expr.line));
}

Value Evaluator::eval_slice(const SliceExpr& expr) {
    const Value object = eval(*expr.object);
    SliceBounds bounds{Value::none(), Value::none(), Value::none()};
    if (expr.start != nullptr) bounds.start = eval(*expr.start);
    if (expr.stop != nullptr) bounds.stop = eval(*expr.stop);
    if (expr.step != nullptr) bounds.step = eval(*expr.step);
    line_ = expr.line;
    return get_slice(*this, object, bounds);
}

CallArguments Evaluator::eval_arguments(const ArgumentExprs& exprs) {
    CallArguments arguments;
    arguments.positional.reserve(exprs.positional.size());
    for (const ExprPtr& expr : exprs.positional) arguments.positional.push_back(eval(*expr));
    for (const auto& [name, expr] : exprs.named) arguments.named.emplace_back(name, eval(*expr));
    if (exprs.star != nullptr) {
        const Value more = to_sequence(*this, eval(*exprs.star));
        heap().require(more.items().size() * sizeof(Value));
        arguments.positional.insert(arguments.positional.end(), more.items().begin(),
                                    more.items().end());
    }
    if (exprs.double_star != nullptr) {
        const Value more = eval(*exprs.double_star);
        if (!more.is_dict()) fail("the argument after ** must be a mapping");
        for (const auto& [key, value] : more.dict().entries()) {
            if (!key.is_text()) fail("keywords must be strings");
            arguments.named.emplace_back(std::string(key.view()), value);
        }
    }
    return arguments;
}

Value Evaluator::eval_call(const CallExpr& expr) {
    if (expr.callee->kind == ExprKind::kAttribute) {
        // A method of a string or container is called without making it a value first.
        const auto& attribute = static_cast<const AttributeExpr&>(*expr.callee);
        const Value object = eval(*attribute.object);
        if (const NativeSpec* method = find_method(object, attribute.name)) {
            const CallArguments arguments = eval_arguments(expr.arguments);
            line_ = expr.line;
            return method->function(*this, object, Bound(*method, arguments));
        }
        line_ = expr.line;
        const Value callee = get_attribute(*this, object, attribute.name);
        const CallArguments arguments = eval_arguments(expr.arguments);
        line_ = expr.line;
        return call(callee, arguments);
    }
    const Value callee = eval(*expr.callee);
    const CallArguments arguments = eval_arguments(expr.arguments);
    line_ = expr.line;
    return call(callee, arguments);
}

Value Evaluator::eval_filter(const FilterExpr& expr, const Value* innermost) {
    const Level level(*this);
    Value subject;
    if (expr.subject == nullptr) {
        subject = *innermost;
    } else if (innermost != nullptr) {
        subject = eval_filter(static_cast<const FilterExpr&>(*expr.subject), innermost);
    } else {
        subject = eval(*expr.subject);
    }
    const CallArguments arguments = eval_arguments(expr.arguments);
    line_ = expr.line;
    return expr.filter->function(*this, subject, Bound(*expr.filter, arguments));
}

Value Evaluator::eval_test(const TestExpr& expr) {
    const Value subject = eval(*expr.subject);
    const CallArguments arguments = eval_arguments(expr.arguments);
    line_ = expr.line;
    const Value holds = expr.test->function(*this, subject, Bound(*expr.test, arguments));
    return Value(is_true(holds) != expr.is_negated);
}

}  // namespace pagoda::text::jinja
