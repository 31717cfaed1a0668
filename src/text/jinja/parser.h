#pragma once
// Parser: tokens to the syntax tree of one template, by recursive descent with bounded nesting.
// Everything that can be refused is refused here, with its line: unknown tags, filters and tests,
// and features that are not offered. Used once, by one thread; throws Failure.

#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace pagoda::text::jinja {

struct SyntaxTree {
    Body body;
    std::vector<std::string> symbols;  // names by Symbol
};

class Parser final {
  public:
    static constexpr int kMaxNesting = 100;  // of tags, and of expressions within one tag

    explicit Parser(std::string_view source);
    [[nodiscard]] SyntaxTree parse();

  private:
    using Ends = std::initializer_list<std::string_view>;
    class Nested;

    // Tokens.
    [[nodiscard]] const Token& current() const { return tokens_[at_]; }
    [[nodiscard]] const Token& ahead() const;
    const Token& next();
    [[nodiscard]] bool is_operator(std::string_view text) const;
    [[nodiscard]] bool is_name(std::string_view text) const;
    bool skip_operator(std::string_view text);
    bool skip_name(std::string_view text);
    void expect_operator(std::string_view text);
    std::string expect_name();
    void expect_block_end();
    [[noreturn]] void error(std::string message) const;
    [[noreturn]] void error_at(const Token& token, std::string message) const;
    [[nodiscard]] static std::string describe(const Token& token);
    [[nodiscard]] Symbol intern(const std::string& name);

    // Statements (parser.cpp). A body ends before the name of one of `ends`.
    [[nodiscard]] Body parse_body(Ends ends);
    [[nodiscard]] Body parse_block_body(Ends ends);  // from the end of its opening tag
    [[nodiscard]] StmtPtr parse_statement();
    [[nodiscard]] StmtPtr parse_for(int line);
    [[nodiscard]] StmtPtr parse_if(int line);
    [[nodiscard]] StmtPtr parse_set(int line);
    [[nodiscard]] StmtPtr parse_macro(int line);
    [[nodiscard]] StmtPtr parse_call_block(int line);
    [[nodiscard]] StmtPtr parse_filter_block(int line);
    [[nodiscard]] StmtPtr parse_with(int line);
    [[nodiscard]] StmtPtr parse_print(int line);
    [[nodiscard]] StmtPtr parse_jump(const Token& name);
    [[nodiscard]] StmtPtr parse_generation(int line);
    [[nodiscard]] StmtPtr parse_autoescape(int line);
    [[noreturn]] void refuse_tag(const Token& name) const;
    void parse_signature(Signature& signature);
    [[nodiscard]] Body parse_macro_body(Signature& signature, std::string_view end);
    [[nodiscard]] Target parse_target(bool allows_tuple);
    [[nodiscard]] Target parse_single_target();

    // Expressions (parser_expression.cpp).
    [[nodiscard]] ExprPtr parse_expression(bool with_condition = true);
    [[nodiscard]] ExprPtr parse_tuple(bool with_condition, bool is_in_parentheses,
                                      std::string_view end_name = {});
    [[nodiscard]] bool is_tuple_end(std::string_view end_name) const;
    [[nodiscard]] ExprPtr parse_or();
    [[nodiscard]] ExprPtr parse_and();
    [[nodiscard]] ExprPtr parse_not();
    [[nodiscard]] ExprPtr parse_compare();
    [[nodiscard]] ExprPtr parse_sum();
    [[nodiscard]] ExprPtr parse_concat();
    [[nodiscard]] ExprPtr parse_product();
    [[nodiscard]] ExprPtr parse_power();
    [[nodiscard]] ExprPtr parse_unary(bool with_filter = true);
    [[nodiscard]] ExprPtr parse_primary();
    [[nodiscard]] ExprPtr parse_name();
    [[nodiscard]] ExprPtr parse_string();
    [[nodiscard]] ExprPtr parse_list();
    [[nodiscard]] ExprPtr parse_dict();
    [[nodiscard]] ExprPtr parse_postfix(ExprPtr base);
    [[nodiscard]] ExprPtr parse_filters_and_tests(ExprPtr base);
    [[nodiscard]] ExprPtr parse_attribute(ExprPtr base);
    [[nodiscard]] ExprPtr parse_subscript(ExprPtr base);
    [[nodiscard]] ExprPtr parse_slice(ExprPtr base, ExprPtr start, int line);
    [[nodiscard]] ExprPtr parse_call(ExprPtr base);
    [[nodiscard]] ExprPtr parse_filter(ExprPtr base);
    [[nodiscard]] ExprPtr parse_test(ExprPtr base);
    [[nodiscard]] ArgumentExprs parse_arguments();
    void parse_argument(ArgumentExprs& arguments);
    [[nodiscard]] std::string parse_dotted_name();
    // Sets the height of a finished node from its tallest child and refuses too tall ones.
    template <class Node>
    [[nodiscard]] ExprPtr sealed(std::unique_ptr<Node> node, int child_height) const;

    std::vector<Token> tokens_;
    std::size_t at_ = 0;
    int nesting_ = 0;
    int loops_ = 0;  // loops around this place, within the innermost macro
    std::vector<std::string> symbols_;
    std::unordered_map<std::string, Symbol> symbol_of_;
    std::vector<Signature*> macros_;      // macros around this place
    std::vector<std::string_view> open_;  // names of the open tags, for messages
};

template <class Node>
ExprPtr Parser::sealed(std::unique_ptr<Node> node, int child_height) const {
    node->height = child_height + 1;
    if (node->height > 2 * kMaxNesting) error("this expression is nested too deeply");
    return node;
}

}  // namespace pagoda::text::jinja
