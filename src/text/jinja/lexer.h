#pragma once
// Template source to tokens, with Jinja's whitespace control (trim_blocks and lstrip_blocks on, the
// last newline dropped). Free function; tokens own their text.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda::text::jinja {

enum class TokenKind {
    kText,  // literal text between tags
    kOutputBegin,
    kOutputEnd,
    kBlockBegin,
    kBlockEnd,
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,
    kEnd,
};

struct Token {
    TokenKind kind = TokenKind::kEnd;
    int line = 1;
    int column = 1;
    std::string text;  // name, operator, decoded string or literal text
    std::int64_t integer = 0;
    double number = 0;
};

// Throws Failure with line and column.
[[nodiscard]] std::vector<Token> tokenize_template(std::string_view source);

}  // namespace pagoda::text::jinja
