#include "base/terminal_text.h"

#include <fmt/core.h>

#include "base/utf8.h"

namespace pagoda::base {
namespace {

constexpr char32_t kDelete = 0x7f;

// `escape` writes what may not stand there; it is asked for control characters and bytes that are
// no UTF-8.
template <class Escape>
std::string escaped(std::string_view text, Escape escape) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const Utf8Char next = decode_utf8(text);
        const std::string_view bytes = text.substr(0, next.bytes);
        text.remove_prefix(next.bytes);
        if (next.valid && !is_terminal_control(next.code)) {
            out.append(bytes);
        } else {
            escape(next, bytes, out);
        }
    }
    return out;
}

void append_escape(const Utf8Char& character, std::string_view bytes, std::string& out) {
    if (character.valid && character.code > kDelete) {
        out += fmt::format("\\u{:04x}", static_cast<unsigned>(character.code));
        return;
    }
    for (const char byte : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
}

}  // namespace

bool is_terminal_control(char32_t code) {
    if (code < 0x20 || (code >= kDelete && code < 0xa0)) return true;
    return code == 0x61c || code == 0x200e || code == 0x200f ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

std::string terminal_line(std::string_view text) {
    return escaped(text, [](const Utf8Char& character, std::string_view bytes, std::string& out) {
        if (character.code == U'\n') {
            out += "\\n";
        } else {
            append_escape(character, bytes, out);
        }
    });
}

std::string terminal_text(std::string_view text) {
    return escaped(text, [](const Utf8Char& character, std::string_view bytes, std::string& out) {
        if (character.code == U'\n' || character.code == U'\t') {
            out.append(bytes);
        } else {
            append_escape(character, bytes, out);
        }
    });
}

std::string terminal_json(std::string_view json) {
    return escaped(json, [](const Utf8Char& character, std::string_view bytes, std::string& out) {
        // Between its values an indented text has line ends; inside of strings there are none.
        if (character.code == U'\n') {
            out.append(bytes);
        } else {
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(character.code));
        }
    });
}

}  // namespace pagoda::base
