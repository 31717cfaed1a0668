#pragma once
// Unicode as Python's str sees it: code points, classes and case. Texts are valid UTF-8. Free
// functions, thread-safe.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda::text::jinja {

[[nodiscard]] std::size_t count_code_points(std::string_view text);
// Byte offset of a code point; the size of the text when there are not so many.
[[nodiscard]] std::size_t offset_of(std::string_view text, std::size_t index);
// The first code point and its bytes. REQUIRES: the text is not empty.
struct CodePoint {
    char32_t code;
    std::size_t bytes;
};
[[nodiscard]] CodePoint first_code_point(std::string_view text);
// Byte offset where the last code point before `end` begins. REQUIRES: end > 0.
[[nodiscard]] std::size_t previous_offset(std::string_view text, std::size_t end);
[[nodiscard]] std::string reversed(std::string_view text);

[[nodiscard]] bool is_space(char32_t code);
[[nodiscard]] bool is_line_break(char32_t code);
[[nodiscard]] bool is_alpha(char32_t code);
[[nodiscard]] bool is_decimal(char32_t code);
[[nodiscard]] bool is_digit(char32_t code);
[[nodiscard]] bool is_numeric(char32_t code);
[[nodiscard]] bool is_alnum(char32_t code);
[[nodiscard]] bool is_lower(char32_t code);
[[nodiscard]] bool is_upper(char32_t code);
[[nodiscard]] bool is_title(char32_t code);
[[nodiscard]] bool is_printable(char32_t code);
[[nodiscard]] bool is_identifier_start(char32_t code);
[[nodiscard]] bool is_word(char32_t code);  // \w of Python's re

[[nodiscard]] std::string to_lower(std::string_view text);
[[nodiscard]] std::string to_upper(std::string_view text);
[[nodiscard]] std::string to_title(std::string_view text);
[[nodiscard]] std::string to_capitalized(std::string_view text);
[[nodiscard]] std::string swap_case(std::string_view text);
[[nodiscard]] std::string fold_case(std::string_view text);

// str.strip() and its halves without an argument, and with a set of characters.
enum class Side { kLeft, kRight, kBoth };
[[nodiscard]] std::string_view strip_space(std::string_view text, Side side = Side::kBoth);
[[nodiscard]] std::string_view strip_characters(std::string_view text, std::string_view characters,
                                                Side side = Side::kBoth);
// str.splitlines()
[[nodiscard]] std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);

}  // namespace pagoda::text::jinja
