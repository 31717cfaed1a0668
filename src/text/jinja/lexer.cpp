#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <fmt/core.h>

#include "base/utf8.h"
#include "text/jinja/failure.h"
#include "text/jinja/string_literal.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

namespace {

std::string normalized(std::string_view source) {
    std::string out;
    out.reserve(source.size());
    for (std::size_t at = 0; at < source.size(); ++at) {
        if (source[at] != '\r') {
            out += source[at];
            continue;
        }
        out += '\n';
        if (at + 1 < source.size() && source[at + 1] == '\n') ++at;
    }
    if (!out.empty() && out.back() == '\n') out.pop_back();
    return out;
}

bool is_ascii_digit(char c) {
    return c >= '0' && c <= '9';
}

class Lexer {
  public:
    explicit Lexer(std::string_view source) : source_(normalized(source)) {}

    std::vector<Token> run() {
        while (at_ < source_.size()) lex_text();
        push(TokenKind::kEnd, "");
        return std::move(tokens_);
    }

  private:
    [[nodiscard]] std::string_view rest() const { return std::string_view(source_).substr(at_); }
    [[nodiscard]] bool starts(std::string_view prefix) const { return rest().starts_with(prefix); }

    void advance(std::size_t bytes) {
        for (const std::size_t end = at_ + bytes; at_ < end; ++at_) {
            if (source_[at_] == '\n') {
                ++line_;
                column_ = 1;
            } else if ((static_cast<unsigned char>(source_[at_]) & 0xC0U) != 0x80U) {
                ++column_;
            }
        }
    }

    void skip_space() {
        while (at_ < source_.size()) {
            const CodePoint point = first_code_point(rest());
            if (!is_space(point.code)) return;
            advance(point.bytes);
        }
    }

    [[noreturn]] void error(std::string message) const {
        throw Failure(base::ErrorCode::kInvalidArgument, std::move(message), line_, column_);
    }
    Token& push(TokenKind kind, std::string text) {
        tokens_.push_back(Token{kind, line_, column_, std::move(text)});
        return tokens_.back();
    }

    // Literal text up to the next tag, then that tag.
    void lex_text() {
        std::size_t tag = at_;
        for (;; ++tag) {
            tag = source_.find('{', tag);
            if (tag == std::string::npos || tag + 1 >= source_.size()) {
                push_text(source_.substr(at_));
                advance(source_.size() - at_);
                return;
            }
            const char second = source_[tag + 1];
            if (second == '{' || second == '%' || second == '#') break;
        }
        const char second = source_[tag + 1];
        const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
        const std::string_view text = std::string_view(source_).substr(at_, tag - at_);
        push_text(std::string(stripped_before_tag(text, sign, second != '{')));
        advance(tag - at_);
        if (second == '#') return lex_comment();
        if (second == '%' && lex_raw()) return;
        const bool is_block = second == '%';
        push(is_block ? TokenKind::kBlockBegin : TokenKind::kOutputBegin, "");
        advance(2);
        if (starts("-") || starts("+")) advance(1);
        lex_tag(is_block);
    }

    void push_text(std::string text) {
        if (!text.empty()) push(TokenKind::kText, std::move(text));
    }

    // What whitespace control leaves of the text in front of a tag.
    [[nodiscard]] std::string_view stripped_before_tag(std::string_view text, char sign,
                                                       bool is_strippable) const {
        if (sign == '-') return strip_space(text, Side::kRight);
        if (sign == '+' || !is_strippable) return text;
        const std::size_t newline = text.rfind('\n');
        const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
        if (begin == 0 && !is_line_start_) return text;
        return strip_space(text.substr(begin), Side::kLeft).empty() ? text.substr(0, begin) : text;
    }

    // Leaves a tag whose end was found; `sign` is the character before it, if it is a control.
    void leave_tag(std::size_t end_bytes, char sign, bool trims_newline) {
        advance(end_bytes);
        const std::size_t before = at_;
        if (sign == '-') {
            skip_space();
        } else if (sign != '+' && trims_newline && starts("\n")) {
            advance(1);
        }
        is_line_start_ = at_ > before && source_[at_ - 1] == '\n';
    }

    void lex_comment() {
        const bool has_sign =
            at_ + 2 < source_.size() && (source_[at_ + 2] == '-' || source_[at_ + 2] == '+');
        const std::size_t begin = at_ + (has_sign ? 3 : 2);
        const std::size_t end = source_.find("#}", begin);
        if (end == std::string::npos) error("this comment has no end, expected '#}'");
        char sign = end > begin ? source_[end - 1] : ' ';
        if (sign != '-' && sign != '+') sign = ' ';
        leave_tag(end + 2 - at_, sign, true);
    }

    // {% raw %}: everything up to {% endraw %} is text.
    bool lex_raw() {
        std::size_t end = match_word_tag(at_, "raw");
        if (end == std::string::npos) return false;
        const bool strips_after = source_[end - 3] == '-';
        const int first_line = line_, first_column = column_;
        leave_tag(end - at_, strips_after ? '-' : ' ', false);
        std::size_t close = at_;
        for (;; ++close) {
            close = source_.find("{%", close);
            if (close == std::string::npos) {
                throw Failure(base::ErrorCode::kInvalidArgument,
                              "this raw block has no end, expected '{% endraw %}'", first_line,
                              first_column);
            }
            end = match_word_tag(close, "endraw");
            if (end != std::string::npos) break;
        }
        const std::string_view text = std::string_view(source_).substr(at_, close - at_);
        push_text(std::string(stripped_before_tag(text, source_[close + 2], true)));
        advance(close - at_);
        leave_tag(end - at_, source_[end - 3], true);
        return true;
    }

    // The end of the tag `{% word %}` at an offset, or npos.
    [[nodiscard]] std::size_t match_word_tag(std::size_t at, std::string_view word) const {
        at += 2;
        const auto skip = [&] {
            while (at < source_.size() && is_space(static_cast<unsigned char>(source_[at]))) ++at;
        };
        if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) ++at;
        skip();
        if (source_.compare(at, word.size(), word) != 0) return std::string::npos;
        at += word.size();
        skip();
        if (at < source_.size() &&
            (source_[at] == '-' || (source_[at] == '+' && word == "endraw"))) {
            ++at;
        }
        return source_.compare(at, 2, "%}") == 0 ? at + 2 : std::string::npos;
    }

    void lex_tag(bool is_block) {
        const int first_line = line_, first_column = column_;
        while (at_ < source_.size()) {
            skip_space();
            if (brackets_.empty() && lex_tag_end(is_block)) return;
            if (at_ < source_.size()) lex_expression_token();
        }
        throw Failure(base::ErrorCode::kInvalidArgument,
                      fmt::format("this tag has no end, expected '{}'", is_block ? "%}" : "}}"),
                      first_line, first_column);
    }

    bool lex_tag_end(bool is_block) {
        const std::string_view end = is_block ? "%}" : "}}";
        char sign = ' ';
        if (starts("-") || (is_block && starts("+"))) sign = source_[at_];
        const std::size_t skipped = sign == ' ' ? 0 : 1;
        if (!rest().substr(skipped).starts_with(end)) return false;
        push(is_block ? TokenKind::kBlockEnd : TokenKind::kOutputEnd, "");
        leave_tag(skipped + 2, sign, is_block);
        return true;
    }

    void lex_expression_token() {
        const char c = source_[at_];
        const CodePoint point = first_code_point(rest());
        if (is_ascii_digit(c)) return lex_number();
        if (is_identifier_start(point.code)) return lex_name();
        if (c == '"' || c == '\'') return lex_string(c);
        lex_operator();
    }

    void lex_name() {
        std::size_t end = at_;
        while (end < source_.size()) {
            const CodePoint point = first_code_point(std::string_view(source_).substr(end));
            if (!is_word(point.code)) break;
            end += point.bytes;
        }
        push(TokenKind::kName, source_.substr(at_, end - at_));
        advance(end - at_);
    }

    void lex_string(char quote) {
        std::size_t end = at_ + 1;
        while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
        if (end >= source_.size()) error("this string has no end");
        const std::string_view body = std::string_view(source_).substr(at_ + 1, end - at_ - 1);
        StringLiteral literal = decode_string_literal(body);
        if (!literal.error.empty()) error(literal.error);
        push(TokenKind::kString, std::move(literal.text));
        advance(end + 1 - at_);
    }

    // Digits with single underscores between them, from an offset.
    [[nodiscard]] std::size_t digits_end(std::size_t at, bool (*is_valid)(char)) const {
        while (at < source_.size()) {
            if (is_valid(source_[at])) {
                ++at;
            } else if (source_[at] == '_' && at + 1 < source_.size() && is_valid(source_[at + 1])) {
                at += 2;
            } else {
                break;
            }
        }
        return at;
    }

    void lex_number() {
        const auto is_digit_at = [this](std::size_t at) {
            return at < source_.size() && is_ascii_digit(source_[at]);
        };
        if (lex_radix_number()) return;
        std::size_t end = digits_end(at_, is_ascii_digit);
        bool is_float = false;
        const bool follows_dot = at_ > 0 && source_[at_ - 1] == '.';
        if (!follows_dot && end < source_.size() && source_[end] == '.' && is_digit_at(end + 1)) {
            is_float = true;
            end = digits_end(end + 1, is_ascii_digit);
        }
        if (!follows_dot && end < source_.size() && (source_[end] | 0x20) == 'e') {
            std::size_t exponent = end + 1;
            if (exponent < source_.size() &&
                (source_[exponent] == '+' || source_[exponent] == '-')) {
                ++exponent;
            }
            if (is_digit_at(exponent)) {
                is_float = true;
                end = digits_end(exponent, is_ascii_digit);
            }
        }
        std::string text = source_.substr(at_, end - at_);
        std::erase(text, '_');
        if (!is_float && text.size() > 1 && text[0] == '0' &&
            text.find_first_not_of('0') != std::string::npos) {
            error(fmt::format("'{}' is no number: it may not begin with 0", text));
        }
        push_number(text, is_float, 10);
        advance(end - at_);
    }

    bool lex_radix_number() {
        if (source_[at_] != '0' || at_ + 2 >= source_.size()) return false;
        const char kind = static_cast<char>(source_[at_ + 1] | 0x20);
        const int base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
        if (base == 0) return false;
        bool (*const is_valid)(char) =
            base == 16
                ? [](char
                         c) { return is_ascii_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }
            : base == 8 ? [](char c) { return c >= '0' && c <= '7'; }
                        : [](char c) { return c == '0' || c == '1'; };
        const std::size_t end = digits_end(at_ + 2, is_valid);
        if (end == at_ + 2) return false;
        std::string text = source_.substr(at_ + 2, end - at_ - 2);
        std::erase(text, '_');
        push_number(text, false, base);
        advance(end - at_);
        return true;
    }

    void push_number(const std::string& text, bool is_float, int base) {
        Token& token = push(is_float ? TokenKind::kFloat : TokenKind::kInteger, text);
        const char* const last = text.data() + text.size();
        if (is_float) {
            const auto parsed = std::from_chars(text.data(), last, token.number);
            if (parsed.ec == std::errc::result_out_of_range) {
                const bool is_tiny = text.find('-') != std::string::npos;
                token.number = is_tiny ? 0.0 : std::numeric_limits<double>::infinity();
            }
            return;
        }
        const auto parsed = std::from_chars(text.data(), last, token.integer, base);
        if (parsed.ec != std::errc()) {
            error(fmt::format("the integer {} does not fit in 64 bits", text));
        }
    }

    void lex_operator() {
        static constexpr std::array<std::string_view, 27> kOperators = {
            "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]",
            "(",  ")",  "{",  "}",  ">",  "<",  "=", ".", ":", "|", ",", ";", "!"};
        const auto* const found =
            std::find_if(kOperators.begin(), kOperators.end(),
                         [this](std::string_view each) { return starts(each); });
        if (found == kOperators.end() || *found == "!") {
            const CodePoint point = first_code_point(rest());
            error(fmt::format("unexpected character '{}'", rest().substr(0, point.bytes)));
        }
        track_bracket(found->front());
        push(TokenKind::kOperator, std::string(*found));
        advance(found->size());
    }

    // Inside brackets a tag does not end: {{ {'a': {}} }}.
    void track_bracket(char c) {
        if (c == '(') brackets_ += ')';
        if (c == '[') brackets_ += ']';
        if (c == '{') brackets_ += '}';
        if (c != ')' && c != ']' && c != '}') return;
        if (brackets_.empty()) error(fmt::format("unexpected '{}'", c));
        if (brackets_.back() != c) {
            error(fmt::format("unexpected '{}', expected '{}'", c, brackets_.back()));
        }
        brackets_.pop_back();
    }

    const std::string source_;
    std::size_t at_ = 0;
    int line_ = 1;
    int column_ = 1;             // in code points
    bool is_line_start_ = true;  // the last tag took its newline with it
    std::string brackets_;       // closers that are awaited
    std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize_template(std::string_view source) {
    return Lexer(source).run();
}

}  // namespace pagoda::text::jinja
