#include "text/jinja/parser.h"

#include <algorithm>

#include <fmt/core.h>

#include "text/jinja/failure.h"

namespace pagoda::text::jinja {

// Counts one level of nesting for as long as it lives.
class Parser::Nested final {
  public:
    explicit Nested(Parser& parser) : parser_(parser) {
        if (++parser_.nesting_ > kMaxNesting) {
            --parser_.nesting_;
            parser_.error(fmt::format("the template is nested deeper than {}", kMaxNesting));
        }
    }
    ~Nested() { --parser_.nesting_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

  private:
    Parser& parser_;  // outlives this
};

Parser::Parser(std::string_view source) : tokens_(tokenize_template(source)) {}

SyntaxTree Parser::parse() {
    SyntaxTree tree;
    tree.body = parse_body({});
    tree.symbols = std::move(symbols_);
    return tree;
}

const Token& Parser::ahead() const {
    return tokens_[std::min(at_ + 1, tokens_.size() - 1)];
}

const Token& Parser::next() {
    const Token& token = tokens_[at_];
    if (token.kind != TokenKind::kEnd) ++at_;
    return token;
}

bool Parser::is_operator(std::string_view text) const {
    return current().kind == TokenKind::kOperator && current().text == text;
}

bool Parser::is_name(std::string_view text) const {
    return current().kind == TokenKind::kName && current().text == text;
}

bool Parser::skip_operator(std::string_view text) {
    if (!is_operator(text)) return false;
    next();
    return true;
}

bool Parser::skip_name(std::string_view text) {
    if (!is_name(text)) return false;
    next();
    return true;
}

void Parser::expect_operator(std::string_view text) {
    if (!skip_operator(text)) {
        error(fmt::format("expected '{}', got {}", text, describe(current())));
    }
}

std::string Parser::expect_name() {
    if (current().kind != TokenKind::kName) {
        error(fmt::format("expected a name, got {}", describe(current())));
    }
    return next().text;
}

void Parser::expect_block_end() {
    if (current().kind != TokenKind::kBlockEnd) {
        error(fmt::format("expected the end of the tag, got {}", describe(current())));
    }
    next();
}

void Parser::error(std::string message) const {
    error_at(current(), std::move(message));
}

void Parser::error_at(const Token& token, std::string message) const {
    throw Failure(base::ErrorCode::kInvalidArgument, std::move(message), token.line, token.column);
}

std::string Parser::describe(const Token& token) {
    switch (token.kind) {
        case TokenKind::kEnd:
            return "the end of the template";
        case TokenKind::kBlockEnd:
            return "the end of the tag";
        case TokenKind::kOutputEnd:
            return "'}}'";
        case TokenKind::kString:
            return "a string";
        case TokenKind::kText:
            return "text";
        default:
            return fmt::format("'{}'", token.text);
    }
}

Symbol Parser::intern(const std::string& name) {
    const auto [found, is_new] = symbol_of_.try_emplace(name, static_cast<Symbol>(symbols_.size()));
    if (is_new) symbols_.push_back(name);
    return found->second;
}

Body Parser::parse_body(Ends ends) {
    const Nested nested(*this);
    Body body;
    for (;;) {
        const Token& token = next();
        if (token.kind == TokenKind::kText) {
            auto output = std::make_unique<OutputStmt>(token.line);
            output->text = token.text;
            body.push_back(std::move(output));
        } else if (token.kind == TokenKind::kOutputBegin) {
            auto output = std::make_unique<OutputStmt>(token.line);
            output->expr = parse_tuple(true, false);
            if (current().kind != TokenKind::kOutputEnd) {
                error(fmt::format("expected '}}}}', got {}", describe(current())));
            }
            next();
            body.push_back(std::move(output));
        } else if (token.kind == TokenKind::kBlockBegin) {
            if (std::any_of(ends.begin(), ends.end(),
                            [this](std::string_view end) { return is_name(end); })) {
                return body;
            }
            body.push_back(parse_statement());
        } else {
            if (ends.size() == 0) return body;
            error_at(token, fmt::format("the template ends inside '{}', expected '{}'",
                                        open_.empty() ? "" : open_.back(), *(ends.end() - 1)));
        }
    }
}

Body Parser::parse_block_body(Ends ends) {
    skip_operator(":");
    expect_block_end();
    return parse_body(ends);
}

StmtPtr Parser::parse_statement() {
    const Token& name = current();
    if (name.kind != TokenKind::kName) {
        error(fmt::format("expected the name of a tag, got {}", describe(name)));
    }
    next();
    open_.push_back(name.text);
    const int line = name.line;
    StmtPtr statement;
    if (name.text == "for") {
        statement = parse_for(line);
    } else if (name.text == "if") {
        statement = parse_if(line);
    } else if (name.text == "set") {
        statement = parse_set(line);
    } else if (name.text == "macro") {
        statement = parse_macro(line);
    } else if (name.text == "call") {
        statement = parse_call_block(line);
    } else if (name.text == "filter") {
        statement = parse_filter_block(line);
    } else if (name.text == "with") {
        statement = parse_with(line);
    } else if (name.text == "print") {
        statement = parse_print(line);
    } else if (name.text == "break" || name.text == "continue") {
        statement = parse_jump(name);
    } else if (name.text == "generation") {
        statement = parse_generation(line);
    } else if (name.text == "autoescape") {
        statement = parse_autoescape(line);
    } else {
        open_.pop_back();
        refuse_tag(name);
    }
    open_.pop_back();
    expect_block_end();
    return statement;
}

void Parser::refuse_tag(const Token& name) const {
    for (const std::string_view tag : {"include", "import", "from", "extends", "block"}) {
        if (name.text != tag) continue;
        throw Failure(
            base::ErrorCode::kUnsupported,
            fmt::format("the tag '{}' is not supported: a chat template stands alone", name.text),
            name.line, name.column);
    }
    const bool is_end = name.text.starts_with("end") || name.text == "else" || name.text == "elif";
    if (is_end && !open_.empty()) {
        error_at(name, fmt::format("unexpected tag '{}' inside '{}'", name.text, open_.back()));
    }
    error_at(name, fmt::format("unknown tag '{}'", name.text));
}

StmtPtr Parser::parse_for(int line) {
    auto statement = std::make_unique<ForStmt>(line);
    statement->target = parse_target(true);
    if (!skip_name("in")) error(fmt::format("expected 'in', got {}", describe(current())));
    statement->iterable = parse_tuple(false, false, "recursive");
    if (skip_name("if")) statement->filter = parse_expression();
    statement->is_recursive = skip_name("recursive");
    ++loops_;
    statement->body = parse_block_body({"else", "endfor"});
    --loops_;
    if (next().text == "else") {
        statement->otherwise = parse_block_body({"endfor"});
        next();
    }
    return statement;
}

StmtPtr Parser::parse_if(int line) {
    auto statement = std::make_unique<IfStmt>(line);
    for (;;) {
        IfStmt::Branch branch;
        branch.test = parse_tuple(false, false);
        branch.body = parse_block_body({"elif", "else", "endif"});
        statement->branches.push_back(std::move(branch));
        const Token& end = next();
        if (end.text == "elif") continue;
        if (end.text == "else") {
            statement->otherwise = parse_block_body({"endif"});
            next();
        }
        return statement;
    }
}

StmtPtr Parser::parse_set(int line) {
    Target target = parse_target(true);
    if (skip_operator("=")) {
        auto statement = std::make_unique<SetStmt>(line);
        statement->target = std::move(target);
        statement->value = parse_tuple(true, false);
        return statement;
    }
    auto statement = std::make_unique<CaptureStmt>(StmtKind::kSetBlock, line);
    statement->target = std::move(target);
    while (skip_operator("|")) statement->filter = parse_filter(std::move(statement->filter));
    statement->body = parse_block_body({"endset"});
    next();
    return statement;
}

void Parser::parse_signature(Signature& signature) {
    expect_operator("(");
    while (!is_operator(")")) {
        if (!signature.parameters.empty()) expect_operator(",");
        if (is_operator(")")) break;
        const Target parameter = parse_single_target();
        if (!parameter.attribute.empty()) error("a parameter must be a plain name");
        if (skip_operator("=")) {
            signature.defaults.push_back(parse_expression());
        } else if (!signature.defaults.empty()) {
            error("a parameter without a default follows one that has a default");
        }
        signature.parameters.push_back(parameter.symbol);
    }
    expect_operator(")");
}

Body Parser::parse_macro_body(Signature& signature, std::string_view end) {
    const int loops = loops_;
    loops_ = 0;
    macros_.push_back(&signature);
    Body body = parse_block_body({end});
    macros_.pop_back();
    loops_ = loops;
    next();
    // A parameter of that name is an ordinary one.
    for (const Symbol parameter : signature.parameters) {
        const std::string& name = symbols_[static_cast<std::size_t>(parameter)];
        if (name == "caller") signature.uses_caller = false;
        if (name == "varargs") signature.uses_varargs = false;
        if (name == "kwargs") signature.uses_kwargs = false;
    }
    return body;
}

StmtPtr Parser::parse_macro(int line) {
    auto statement = std::make_unique<MacroStmt>(line);
    const Target name = parse_single_target();
    if (!name.attribute.empty()) error("a macro's name must be a plain name");
    statement->symbol = name.symbol;
    statement->signature.name = symbols_[static_cast<std::size_t>(name.symbol)];
    parse_signature(statement->signature);
    statement->body = parse_macro_body(statement->signature, "endmacro");
    return statement;
}

StmtPtr Parser::parse_call_block(int line) {
    auto statement = std::make_unique<CallBlockStmt>(line);
    statement->caller = std::make_unique<MacroStmt>(line);
    statement->caller->signature.name = "caller";
    if (is_operator("(")) parse_signature(statement->caller->signature);
    ExprPtr call = parse_expression();
    if (call->kind != ExprKind::kCall) error("a call tag needs a call, as in {% call name() %}");
    statement->call.reset(static_cast<CallExpr*>(call.release()));
    statement->caller->body = parse_macro_body(statement->caller->signature, "endcall");
    return statement;
}

StmtPtr Parser::parse_filter_block(int line) {
    auto statement = std::make_unique<CaptureStmt>(StmtKind::kFilterBlock, line);
    do {
        statement->filter = parse_filter(std::move(statement->filter));
    } while (skip_operator("|"));
    statement->body = parse_block_body({"endfilter"});
    next();
    return statement;
}

StmtPtr Parser::parse_with(int line) {
    auto statement = std::make_unique<WithStmt>(line);
    while (current().kind != TokenKind::kBlockEnd) {
        if (!statement->bindings.empty()) expect_operator(",");
        Target target = parse_target(false);
        expect_operator("=");
        statement->bindings.emplace_back(std::move(target), parse_expression());
    }
    statement->body = parse_block_body({"endwith"});
    next();
    return statement;
}

StmtPtr Parser::parse_print(int line) {
    auto scope = std::make_unique<IfStmt>(line);  // its else branch always runs
    while (current().kind != TokenKind::kBlockEnd) {
        if (!scope->otherwise.empty()) expect_operator(",");
        auto output = std::make_unique<OutputStmt>(current().line);
        output->expr = parse_expression();
        scope->otherwise.push_back(std::move(output));
    }
    return scope;
}

StmtPtr Parser::parse_jump(const Token& name) {
    if (loops_ == 0) error_at(name, fmt::format("'{}' outside a loop", name.text));
    return std::make_unique<JumpStmt>(name.text == "break" ? StmtKind::kBreak : StmtKind::kContinue,
                                      name.line);
}

StmtPtr Parser::parse_generation(int line) {
    auto statement = std::make_unique<ScopeStmt>(line);
    const int loops = loops_;
    loops_ = 0;
    statement->body = parse_block_body({"endgeneration"});
    loops_ = loops;
    next();
    return statement;
}

StmtPtr Parser::parse_autoescape(int line) {
    const ExprPtr enabled = parse_expression();
    const bool is_off = enabled->kind == ExprKind::kConstant &&
                        static_cast<const ConstantExpr&>(*enabled).value.is_bool() &&
                        !static_cast<const ConstantExpr&>(*enabled).value.boolean();
    if (!is_off) {
        throw Failure(base::ErrorCode::kUnsupported,
                      "autoescape is not supported: the text of a prompt is never escaped", line,
                      1);
    }
    auto statement = std::make_unique<ScopeStmt>(line);
    statement->body = parse_block_body({"endautoescape"});
    next();
    return statement;
}

Target Parser::parse_single_target() {
    const Token& token = current();
    const std::string name = expect_name();
    for (const std::string_view reserved : {"true", "false", "none", "True", "False", "None", "not",
                                            "and", "or", "if", "else", "in", "is"}) {
        if (name == reserved) error_at(token, fmt::format("can't assign to '{}'", name));
    }
    Target target;
    target.symbol = intern(name);
    if (skip_operator(".")) target.attribute = expect_name();
    return target;
}

Target Parser::parse_target(bool allows_tuple) {
    const Nested nested(*this);
    bool is_tuple = false;
    std::vector<Target> parts;
    while (allows_tuple || parts.empty()) {
        if (is_operator("(")) {
            next();
            parts.push_back(parse_target(true));
            expect_operator(")");
        } else if (!parts.empty() && (current().kind != TokenKind::kName || is_name("in"))) {
            break;
        } else {
            parts.push_back(parse_single_target());
        }
        if (!allows_tuple || !skip_operator(",")) break;
        is_tuple = true;
    }
    if (!is_tuple) return std::move(parts.front());
    Target target;
    target.is_tuple = true;
    target.parts = std::move(parts);
    return target;
}

}  // namespace pagoda::text::jinja
