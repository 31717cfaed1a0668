#include "text/jinja/word_wrap.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/jinja/failure.h"
#include "text/jinja/unicode.h"

namespace pagoda::text::jinja {

namespace {

using Characters = std::u32string_view;

bool is_blank(char32_t code) {
    return (code >= 0x09 && code <= 0x0D) || code == ' ';
}

bool is_letter(char32_t code) {
    return is_word(code) && !is_decimal(code);
}

bool is_word_punctuation(char32_t code) {
    return is_word(code) || code == '!' || code == '"' || code == '\'' || code == '&' ||
           code == '.' || code == ',' || code == '?';
}

// The end of a run of at least two dashes that a word character follows; `at` itself when none.
std::size_t dashes_end(Characters text, std::size_t at) {
    std::size_t end = at;
    while (end < text.size() && text[end] == '-') ++end;
    return end >= at + 2 && end < text.size() && is_word(text[end]) ? end : at;
}

// A hyphen after which a word may be broken.
bool is_break_hyphen(Characters text, std::size_t at) {
    if (text[at] != '-') return false;
    const bool after_letters = at >= 2 && is_letter(text[at - 1]) && is_letter(text[at - 2]);
    const bool after_single = at >= 3 && is_word_punctuation(text[at - 1]) && text[at - 2] == '-' &&
                              is_letter(text[at - 3]);
    if (!after_letters && !after_single) return false;
    std::size_t next = at + 1;
    if (next >= text.size() || !is_letter(text[next])) return false;
    ++next;
    if (next < text.size() && text[next] == '-') ++next;
    return next < text.size() && is_letter(text[next]);
}

// The end of the piece that begins at an offset: a run of blanks, a dash, or (part of) a word.
std::size_t piece_end(Characters text, std::size_t begin, bool breaks_on_hyphens) {
    std::size_t end = begin;
    if (is_blank(text[begin])) {
        while (end < text.size() && is_blank(text[end])) ++end;
        return end;
    }
    if (breaks_on_hyphens && begin > 0 && is_word_punctuation(text[begin - 1])) {
        const std::size_t dashes = dashes_end(text, begin);
        if (dashes > begin) return dashes;
    }
    for (end = begin + 1; end < text.size() && !is_blank(text[end]); ++end) {
        if (!breaks_on_hyphens) continue;
        if (is_break_hyphen(text, end)) return end + 1;
        if (is_word_punctuation(text[end - 1]) && dashes_end(text, end) > end) return end;
    }
    return end;
}

std::u32string decode(std::string_view text) {
    std::u32string out;
    while (!text.empty()) {
        const CodePoint point = first_code_point(text);
        out += point.code;
        text.remove_prefix(point.bytes);
    }
    return out;
}

void append_encoded(std::string& out, Characters text) {
    for (const char32_t code : text) base::append_utf8(out, code);
}

bool is_all_space(Characters text) {
    return std::all_of(text.begin(), text.end(), [](char32_t code) { return is_space(code); });
}

// Cuts as much of a piece that is longer than a line as fits, or at its last hyphen.
Characters cut_long_piece(Characters& piece, std::size_t room, bool breaks_on_hyphens) {
    std::size_t end = std::min(room, piece.size());
    if (breaks_on_hyphens && piece.size() > room && room > 0) {
        const std::size_t hyphen = piece.rfind(U'-', room - 1);
        if (hyphen != Characters::npos && hyphen > 0 && piece.find_first_not_of(U'-') < hyphen) {
            end = hyphen + 1;
        }
    }
    const Characters head = piece.substr(0, end);
    piece.remove_prefix(end);
    return head;
}

}  // namespace

std::vector<std::string> wrap_line(Runtime& runtime, std::string_view line,
                                   const WrapOptions& options) {
    if (options.width <= 0) fail("wordwrap() needs a width of at least 1");
    const auto width = static_cast<std::size_t>(options.width);
    runtime.heap().require(line.size() * 16);
    runtime.meter().tick_bytes(line.size() * 8);
    const std::u32string text = decode(line);
    std::vector<Characters> pieces;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = piece_end(text, at, options.break_on_hyphens);
        pieces.push_back(Characters(text).substr(at, end - at));
        at = end;
    }
    std::vector<std::string> lines;
    for (std::size_t next = 0; next < pieces.size();) {
        if (!lines.empty() && is_all_space(pieces[next]) && ++next == pieces.size()) break;
        std::vector<Characters> current;
        std::size_t length = 0;
        while (next < pieces.size() && length + pieces[next].size() <= width) {
            length += pieces[next].size();
            current.push_back(pieces[next++]);
        }
        if (next < pieces.size() && pieces[next].size() > width) {
            if (options.break_long_words) {
                current.push_back(
                    cut_long_piece(pieces[next], width - length, options.break_on_hyphens));
            } else if (current.empty()) {
                current.push_back(pieces[next++]);
            }
        }
        if (!current.empty() && is_all_space(current.back())) current.pop_back();
        if (current.empty()) continue;
        std::string out;
        for (const Characters piece : current) append_encoded(out, piece);
        lines.push_back(std::move(out));
        runtime.tick();
    }
    return lines;
}

}  // namespace pagoda::text::jinja
