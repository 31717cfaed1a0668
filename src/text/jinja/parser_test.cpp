#include "text/jinja/parser.h"

#include <string>

#include <gtest/gtest.h>

#include "text/jinja/failure.h"
#include "text/jinja/program.h"

namespace pagoda::text::jinja {
namespace {

std::string error_of(std::string_view source) {
    const auto program = Program::compile(source);
    return program.ok() ? "" : program.error().message;
}

TEST(JinjaParser, ErrorsPointAtTheToken) {
    EXPECT_EQ(error_of("ab\n{{ 1 + }}"),
              "chat template, line 2, column 8: expected an expression, got '}}'");
    EXPECT_EQ(error_of("{% if a %}\n{% endfor %}"),
              "chat template, line 2, column 4: unexpected tag 'endfor' inside 'if'");
    EXPECT_EQ(error_of("\n\n  {% wat %}"), "chat template, line 3, column 6: unknown tag 'wat'");
    EXPECT_EQ(error_of("\u00e9\u00e9 {{ (1 }}"),
              "chat template, line 1, column 10: unexpected '}', expected ')'");
    EXPECT_EQ(error_of("{% for x in y %}\nabc"),
              "chat template, line 2, column 4: the template ends inside 'for', expected 'endfor'");
    EXPECT_EQ(error_of("{{ 'a"), "chat template, line 1, column 4: this string has no end");
    EXPECT_EQ(error_of("x {{ a "),
              "chat template, line 1, column 5: this tag has no end, expected '}}'");
    EXPECT_EQ(
        error_of("{{ 99999999999999999999 }}"),
        "chat template, line 1, column 4: the integer 99999999999999999999 does not fit in 64 "
        "bits");
}

TEST(JinjaParser, InvalidUtf8IsRefused) {
    EXPECT_EQ(error_of("a\xFFz"), "the chat template is not valid UTF-8");
}

TEST(JinjaParser, ChainsOfOneRankAreOneNode) {
    Parser parser("{{ a ~ b ~ c ~ d }}{{ 1 + 2 - 3 + 4 }}{{ a or b or c }}");
    const SyntaxTree tree = parser.parse();
    ASSERT_EQ(tree.body.size(), 3U);
    for (const StmtPtr& statement : tree.body) {
        EXPECT_EQ(static_cast<const OutputStmt&>(*statement).expr->height, 2);
    }
}

TEST(JinjaParser, EveryNameIsInternedOnce) {
    Parser parser("{{ a }}{{ b.a }}{{ a }}{% set c = b %}");
    EXPECT_EQ(parser.parse().symbols, (std::vector<std::string>{"a", "b", "c"}));
}

}  // namespace
}  // namespace pagoda::text::jinja
