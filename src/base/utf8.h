#pragma once
// UTF-8 (RFC 3629) over hostile bytes. Free functions, thread-safe.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pagoda::base {

struct Utf8Char {
    char32_t code = 0;       // U+FFFD when invalid
    std::uint8_t bytes = 0;  // bytes consumed, at least 1 while input remains; 0 at the end
    bool valid = false;
};

// The first character of the text. An invalid sequence consumes its maximal valid prefix
// (Unicode 15, 3.9, substitution of maximal subparts).
[[nodiscard]] Utf8Char decode_utf8(std::string_view text);
// A code that is no character (a surrogate, above U+10FFFF) is written as U+FFFD.
void append_utf8(std::string& out, char32_t code);
// Bytes before the first invalid or cut sequence: the size of the text when there is none.
[[nodiscard]] std::size_t valid_utf8_prefix(std::string_view text);
[[nodiscard]] bool is_valid_utf8(std::string_view text);
// REQUIRES: is_valid_utf8(text)
[[nodiscard]] std::int64_t num_characters(std::string_view text);
// Every maximal invalid subpart becomes one U+FFFD.
[[nodiscard]] std::string replace_invalid_utf8(std::string_view text);
// Length of the longest prefix that ends on a character boundary: an incomplete but still valid
// start of a character at the end is left out, invalid bytes are not.
[[nodiscard]] std::size_t complete_utf8_prefix(std::string_view text);
// The beginning of a text, at most that many bytes, up to a character's end.
[[nodiscard]] std::string_view cut_utf8(std::string_view text, std::size_t most_bytes);

}  // namespace pagoda::base
