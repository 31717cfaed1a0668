#include <algorithm>
#include <array>
#include <optional>

#include <fmt/core.h>

#include "text/jinja/failure.h"
#include "text/jinja/native.h"
#include "text/jinja/parser.h"

namespace pagoda::text::jinja {

namespace {

struct OperatorName {
    std::string_view text;
    Operator op;
};

template <std::size_t kCount>
std::optional<Operator> find_operator(const std::array<OperatorName, kCount>& table,
                                      const Token& token) {
    if (token.kind != TokenKind::kOperator) return {};
    for (const OperatorName& row : table) {
        if (row.text == token.text) return row.op;
    }
    return {};
}

constexpr std::array<OperatorName, 2> kSums{{{"+", Operator::kAdd}, {"-", Operator::kSubtract}}};
constexpr std::array<OperatorName, 4> kProducts{{{"*", Operator::kMultiply},
                                                 {"/", Operator::kDivide},
                                                 {"//", Operator::kFloorDivide},
                                                 {"%", Operator::kModulo}}};
constexpr std::array<OperatorName, 6> kComparisons{{{"==", Operator::kEqual},
                                                    {"!=", Operator::kNotEqual},
                                                    {"<", Operator::kLess},
                                                    {"<=", Operator::kLessEqual},
                                                    {">", Operator::kGreater},
                                                    {">=", Operator::kGreaterEqual}}};

int height_of(const ExprPtr& expr) {
    return expr == nullptr ? 0 : expr->height;
}

int tallest(const std::vector<ExprPtr>& exprs) {
    int height = 0;
    for (const ExprPtr& each : exprs) height = std::max(height, each->height);
    return height;
}

int tallest(const ArgumentExprs& arguments) {
    int height = std::max({tallest(arguments.positional), height_of(arguments.star),
                           height_of(arguments.double_star)});
    for (const auto& [name, expr] : arguments.named) height = std::max(height, expr->height);
    return height;
}

}  // namespace

ExprPtr Parser::parse_expression(bool with_condition) {
    if (++nesting_ > kMaxNesting) {
        error(fmt::format("the template is nested deeper than {}", kMaxNesting));
    }
    ExprPtr expr = parse_or();
    while (with_condition && is_name("if")) {
        auto condition = std::make_unique<ConditionExpr>(next().line);
        condition->then = std::move(expr);
        condition->test = parse_or();
        if (skip_name("else")) condition->otherwise = parse_expression();
        const int height = std::max(
            {condition->then->height, condition->test->height, height_of(condition->otherwise)});
        expr = sealed(std::move(condition), height);
    }
    --nesting_;
    return expr;
}

bool Parser::is_tuple_end(std::string_view end_name) const {
    return current().kind == TokenKind::kOutputEnd || current().kind == TokenKind::kBlockEnd ||
           is_operator(")") || (!end_name.empty() && is_name(end_name));
}

ExprPtr Parser::parse_tuple(bool with_condition, bool is_in_parentheses,
                            std::string_view end_name) {
    auto tuple = std::make_unique<OperandsExpr>(ExprKind::kTuple, current().line);
    bool is_tuple = false;
    for (;;) {
        if (!tuple->operands.empty()) expect_operator(",");
        if (is_tuple_end(end_name)) break;
        tuple->operands.push_back(parse_expression(with_condition));
        if (!is_operator(",")) break;
        is_tuple = true;
    }
    if (!is_tuple) {
        if (!tuple->operands.empty()) return std::move(tuple->operands.front());
        if (!is_in_parentheses) {
            error(fmt::format("expected an expression, got {}", describe(current())));
        }
    }
    const int height = tallest(tuple->operands);
    return sealed(std::move(tuple), height);
}

ExprPtr Parser::parse_or() {
    ExprPtr first = parse_and();
    if (!is_name("or")) return first;
    auto chain = std::make_unique<OperandsExpr>(ExprKind::kOr, current().line);
    chain->operands.push_back(std::move(first));
    while (skip_name("or")) chain->operands.push_back(parse_and());
    const int height = tallest(chain->operands);
    return sealed(std::move(chain), height);
}

ExprPtr Parser::parse_and() {
    ExprPtr first = parse_not();
    if (!is_name("and")) return first;
    auto chain = std::make_unique<OperandsExpr>(ExprKind::kAnd, current().line);
    chain->operands.push_back(std::move(first));
    while (skip_name("and")) chain->operands.push_back(parse_not());
    const int height = tallest(chain->operands);
    return sealed(std::move(chain), height);
}

ExprPtr Parser::parse_not() {
    int negations = 0;
    const int line = current().line;
    while (skip_name("not")) ++negations;
    ExprPtr expr = parse_compare();
    // Two negations give the truth of the operand, not the operand; more come to one or two.
    if (negations > 2) negations = 2 - negations % 2;
    for (; negations > 0; --negations) {
        auto node = std::make_unique<OperandsExpr>(ExprKind::kNot, line);
        const int height = expr->height;
        node->operands.push_back(std::move(expr));
        expr = sealed(std::move(node), height);
    }
    return expr;
}

ExprPtr Parser::parse_compare() {
    auto chain = std::make_unique<ChainExpr>(ExprKind::kCompare, current().line);
    chain->first = parse_sum();
    int height = chain->first->height;
    for (;;) {
        std::optional<Operator> op = find_operator(kComparisons, current());
        if (op) {
            next();
        } else if (skip_name("in")) {
            op = Operator::kIn;
        } else if (is_name("not") && ahead().kind == TokenKind::kName && ahead().text == "in") {
            next();
            next();
            op = Operator::kNotIn;
        } else {
            break;
        }
        chain->rest.emplace_back(*op, parse_sum());
        height = std::max(height, chain->rest.back().second->height);
    }
    if (chain->rest.empty()) return std::move(chain->first);
    return sealed(std::move(chain), height);
}

ExprPtr Parser::parse_sum() {
    auto chain = std::make_unique<ChainExpr>(ExprKind::kArithmetic, current().line);
    chain->first = parse_concat();
    int height = chain->first->height;
    while (const auto op = find_operator(kSums, current())) {
        next();
        chain->rest.emplace_back(*op, parse_concat());
        height = std::max(height, chain->rest.back().second->height);
    }
    if (chain->rest.empty()) return std::move(chain->first);
    return sealed(std::move(chain), height);
}

ExprPtr Parser::parse_concat() {
    ExprPtr first = parse_product();
    if (!is_operator("~")) return first;
    auto chain = std::make_unique<OperandsExpr>(ExprKind::kConcat, current().line);
    chain->operands.push_back(std::move(first));
    while (skip_operator("~")) chain->operands.push_back(parse_product());
    const int height = tallest(chain->operands);
    return sealed(std::move(chain), height);
}

ExprPtr Parser::parse_product() {
    auto chain = std::make_unique<ChainExpr>(ExprKind::kArithmetic, current().line);
    chain->first = parse_power();
    int height = chain->first->height;
    while (const auto op = find_operator(kProducts, current())) {
        next();
        chain->rest.emplace_back(*op, parse_power());
        height = std::max(height, chain->rest.back().second->height);
    }
    if (chain->rest.empty()) return std::move(chain->first);
    return sealed(std::move(chain), height);
}

ExprPtr Parser::parse_power() {
    auto chain = std::make_unique<ChainExpr>(ExprKind::kArithmetic, current().line);
    chain->first = parse_unary();
    int height = chain->first->height;
    while (skip_operator("**")) {
        chain->rest.emplace_back(Operator::kPower, parse_unary());
        height = std::max(height, chain->rest.back().second->height);
    }
    if (chain->rest.empty()) return std::move(chain->first);
    return sealed(std::move(chain), height);
}

ExprPtr Parser::parse_unary(bool with_filter) {
    ExprPtr expr;
    if (is_operator("-") || is_operator("+")) {
        if (++nesting_ > kMaxNesting) {
            error(fmt::format("the template is nested deeper than {}", kMaxNesting));
        }
        const bool is_minus = is_operator("-");
        auto node = std::make_unique<OperandsExpr>(
            is_minus ? ExprKind::kNegate : ExprKind::kPositive, next().line);
        node->operands.push_back(parse_unary(false));
        const int height = node->operands.front()->height;
        expr = sealed(std::move(node), height);
        --nesting_;
    } else {
        expr = parse_primary();
    }
    expr = parse_postfix(std::move(expr));
    return with_filter ? parse_filters_and_tests(std::move(expr)) : std::move(expr);
}

ExprPtr Parser::parse_primary() {
    const Token& token = current();
    switch (token.kind) {
        case TokenKind::kName:
            return parse_name();
        case TokenKind::kString:
            return parse_string();
        case TokenKind::kInteger:
            return std::make_unique<ConstantExpr>(token.line, Value(next().integer));
        case TokenKind::kFloat:
            return std::make_unique<ConstantExpr>(token.line, Value(next().number));
        default:
            break;
    }
    if (skip_operator("(")) {
        ExprPtr expr = parse_tuple(true, true);
        expect_operator(")");
        return expr;
    }
    if (is_operator("[")) return parse_list();
    if (is_operator("{")) return parse_dict();
    error(fmt::format("expected an expression, got {}", describe(token)));
}

ExprPtr Parser::parse_name() {
    const Token& token = next();
    const std::string& name = token.text;
    if (name == "true" || name == "True") {
        return std::make_unique<ConstantExpr>(token.line, Value(true));
    }
    if (name == "false" || name == "False") {
        return std::make_unique<ConstantExpr>(token.line, Value(false));
    }
    if (name == "none" || name == "None") {
        return std::make_unique<ConstantExpr>(token.line, Value::none());
    }
    for (Signature* macro : macros_) {
        macro->uses_caller = macro->uses_caller || name == "caller";
        macro->uses_varargs = macro->uses_varargs || name == "varargs";
        macro->uses_kwargs = macro->uses_kwargs || name == "kwargs";
    }
    return std::make_unique<NameExpr>(token.line, intern(name));
}

ExprPtr Parser::parse_string() {
    const int line = current().line;
    std::string text;
    while (current().kind == TokenKind::kString) text += next().text;
    return std::make_unique<ConstantExpr>(line, make_text(std::move(text)));
}

ExprPtr Parser::parse_list() {
    auto list = std::make_unique<OperandsExpr>(ExprKind::kList, next().line);
    while (!is_operator("]")) {
        if (!list->operands.empty()) expect_operator(",");
        if (is_operator("]")) break;
        list->operands.push_back(parse_expression());
    }
    expect_operator("]");
    const int height = tallest(list->operands);
    return sealed(std::move(list), height);
}

ExprPtr Parser::parse_dict() {
    auto dict = std::make_unique<DictExpr>(next().line);
    int height = 0;
    while (!is_operator("}")) {
        if (!dict->entries.empty()) expect_operator(",");
        if (is_operator("}")) break;
        ExprPtr key = parse_expression();
        expect_operator(":");
        ExprPtr value = parse_expression();
        height = std::max({height, key->height, value->height});
        dict->entries.emplace_back(std::move(key), std::move(value));
    }
    expect_operator("}");
    return sealed(std::move(dict), height);
}

ExprPtr Parser::parse_postfix(ExprPtr base) {
    for (;;) {
        if (is_operator(".")) {
            base = parse_attribute(std::move(base));
        } else if (is_operator("[")) {
            base = parse_subscript(std::move(base));
        } else if (is_operator("(")) {
            base = parse_call(std::move(base));
        } else {
            return base;
        }
    }
}

ExprPtr Parser::parse_filters_and_tests(ExprPtr base) {
    for (;;) {
        if (skip_operator("|")) {
            base = parse_filter(std::move(base));
        } else if (is_name("is")) {
            base = parse_test(std::move(base));
        } else if (is_operator("(")) {
            base = parse_call(std::move(base));
        } else {
            return base;
        }
    }
}

ExprPtr Parser::parse_attribute(ExprPtr base) {
    const int line = next().line;
    const int height = base->height;
    if (current().kind == TokenKind::kInteger) {
        auto item = std::make_unique<ItemExpr>(line);
        item->object = std::move(base);
        item->key = std::make_unique<ConstantExpr>(line, Value(next().integer));
        return sealed(std::move(item), height);
    }
    auto attribute = std::make_unique<AttributeExpr>(line);
    attribute->object = std::move(base);
    attribute->name = expect_name();
    return sealed(std::move(attribute), height);
}

ExprPtr Parser::parse_subscript(ExprPtr base) {
    const int line = next().line;
    ExprPtr key;
    if (!is_operator(":")) key = parse_expression();
    if (is_operator(":")) return parse_slice(std::move(base), std::move(key), line);
    if (is_operator(",")) {
        auto tuple = std::make_unique<OperandsExpr>(ExprKind::kTuple, line);
        tuple->operands.push_back(std::move(key));
        while (skip_operator(",")) {
            if (is_operator("]")) break;
            tuple->operands.push_back(parse_expression());
            if (is_operator(":")) error("a slice can't be part of a tuple");
        }
        const int height = tallest(tuple->operands);
        key = sealed(std::move(tuple), height);
    }
    expect_operator("]");
    auto item = std::make_unique<ItemExpr>(line);
    const int height = std::max(base->height, key->height);
    item->object = std::move(base);
    item->key = std::move(key);
    return sealed(std::move(item), height);
}

ExprPtr Parser::parse_slice(ExprPtr base, ExprPtr start, int line) {
    auto slice = std::make_unique<SliceExpr>(line);
    slice->object = std::move(base);
    slice->start = std::move(start);
    expect_operator(":");
    if (!is_operator("]") && !is_operator(":")) slice->stop = parse_expression();
    if (skip_operator(":") && !is_operator("]")) slice->step = parse_expression();
    if (is_operator(",")) error("a slice can't be part of a tuple");
    expect_operator("]");
    const int height = std::max({slice->object->height, height_of(slice->start),
                                 height_of(slice->stop), height_of(slice->step)});
    return sealed(std::move(slice), height);
}

ExprPtr Parser::parse_call(ExprPtr base) {
    auto call = std::make_unique<CallExpr>(current().line);
    call->callee = std::move(base);
    call->arguments = parse_arguments();
    const int height = std::max(call->callee->height, tallest(call->arguments));
    return sealed(std::move(call), height);
}

std::string Parser::parse_dotted_name() {
    std::string name = expect_name();
    while (skip_operator(".")) name += "." + expect_name();
    return name;
}

ExprPtr Parser::parse_filter(ExprPtr base) {
    const Token& token = current();
    auto filter = std::make_unique<FilterExpr>(token.line);
    const std::string name = parse_dotted_name();
    filter->filter = find_filter(name);
    if (filter->filter == nullptr) {
        if (is_refused_filter(name)) {
            throw Failure(base::ErrorCode::kUnsupported,
                          fmt::format("the filter '{}' is not supported", name), token.line,
                          token.column);
        }
        error_at(token, fmt::format("unknown filter '{}'", name));
    }
    filter->subject = std::move(base);
    if (is_operator("(")) filter->arguments = parse_arguments();
    const int height = std::max(height_of(filter->subject), tallest(filter->arguments));
    return sealed(std::move(filter), height);
}

ExprPtr Parser::parse_test(ExprPtr base) {
    auto test = std::make_unique<TestExpr>(next().line);
    test->is_negated = skip_name("not");
    const Token& token = current();
    const std::string name = parse_dotted_name();
    test->test = find_test(name);
    if (test->test == nullptr) error_at(token, fmt::format("unknown test '{}'", name));
    const TokenKind kind = current().kind;
    const bool may_be_argument = kind == TokenKind::kName || kind == TokenKind::kString ||
                                 kind == TokenKind::kInteger || kind == TokenKind::kFloat ||
                                 is_operator("[") || is_operator("{");
    if (is_operator("(")) {
        test->arguments = parse_arguments();
    } else if (may_be_argument && !is_name("else") && !is_name("or") && !is_name("and")) {
        if (is_name("is")) error("tests can't be chained with 'is'");
        test->arguments.positional.push_back(parse_postfix(parse_primary()));
    }
    test->subject = std::move(base);
    const int height = std::max(test->subject->height, tallest(test->arguments));
    return sealed(std::move(test), height);
}

ArgumentExprs Parser::parse_arguments() {
    ArgumentExprs arguments;
    expect_operator("(");
    bool is_first = true;
    while (!is_operator(")")) {
        if (!is_first) expect_operator(",");
        is_first = false;
        if (is_operator(")")) break;
        parse_argument(arguments);
    }
    expect_operator(")");
    return arguments;
}

void Parser::parse_argument(ArgumentExprs& arguments) {
    const bool is_after_named = !arguments.named.empty() || arguments.double_star != nullptr;
    if (is_operator("*")) {
        if (arguments.star != nullptr || arguments.double_star != nullptr) {
            error("only one '*' argument, in front of '**', may be given");
        }
        next();
        arguments.star = parse_expression();
    } else if (is_operator("**")) {
        if (arguments.double_star != nullptr) error("only one '**' argument may be given");
        next();
        arguments.double_star = parse_expression();
    } else if (current().kind == TokenKind::kName && ahead().kind == TokenKind::kOperator &&
               ahead().text == "=") {
        if (arguments.double_star != nullptr) error("no argument may follow a '**' argument");
        std::string name = next().text;
        next();
        arguments.named.emplace_back(std::move(name), parse_expression());
    } else {
        if (is_after_named || arguments.star != nullptr) {
            error("a positional argument follows a named one");
        }
        arguments.positional.push_back(parse_expression());
    }
}

}  // namespace pagoda::text::jinja
