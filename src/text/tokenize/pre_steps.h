#pragma once
// The alternatives that split rules are made of. Each is a function that returns the end of its
// match at `pos`, or `pos` when it doesn't match. They do what the regular expression beside them
// does, backtracking included, in time linear over a whole piece, without recursion.

#include <span>

#include "text/tokenize/char_scan.h"

namespace pagoda::text::step {

struct CodeRange {
    char32_t first, last;
};

// 's 't 're 've 'm 'll 'd; the second ignores case (long s is a case of s).
[[nodiscard]] std::size_t contraction(CharScan& scan, std::size_t pos);
[[nodiscard]] std::size_t contraction_any_case(CharScan& scan, std::size_t pos);

// \s*[\r\n]+ (and \s*[\r\n], which matches the same)
[[nodiscard]] std::size_t lines(CharScan& scan, std::size_t pos);
// \s+(?!\S)
[[nodiscard]] std::size_t blanks_before_blank(CharScan& scan, std::size_t pos);
// \s+
[[nodiscard]] std::size_t blanks(CharScan& scan, std::size_t pos);
// \s+$
[[nodiscard]] std::size_t blanks_at_end(CharScan& scan, std::size_t pos);
// \s{512}(?!\S)|\s{256}(?!\S)| ... |\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}
[[nodiscard]] std::size_t blanks_in_powers(CharScan& scan, std::size_t pos);
// [\r\n]
[[nodiscard]] std::size_t newline(CharScan& scan, std::size_t pos);
// [^\n]+|\n+
[[nodiscard]] std::size_t line_or_feeds(CharScan& scan, std::size_t pos);
// \S+
[[nodiscard]] std::size_t non_blanks(CharScan& scan, std::size_t pos);

// [0-9][0-9][0-9]
[[nodiscard]] std::size_t three_ascii_digits(CharScan& scan, std::size_t pos);
// Groups of three, counted from the end of the number; the first may be shorter.
[[nodiscard]] std::size_t digits_from_end(CharScan& scan, std::size_t pos);
// What cutting at (?=(\d{3})+(?!\d)) leaves: from one such place to the next.
[[nodiscard]] std::size_t between_group_starts(CharScan& scan, std::size_t pos);
// \d{1,3}(?=(?:\d{3})*\b)
[[nodiscard]] std::size_t digits_from_word_end(CharScan& scan, std::size_t pos);

// [!-/:-@\[-`{-~][A-Za-z]+
[[nodiscard]] std::size_t punct_then_ascii_word(CharScan& scan, std::size_t pos);
// Letters with their marks, single spaces between them allowed, after one other character:
// [^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+
[[nodiscard]] std::size_t spaced_words(CharScan& scan, std::size_t pos);
// <sentinel:[0-9]+>
[[nodiscard]] std::size_t sentinel(CharScan& scan, std::size_t pos);
// IMGIMG[A-I]{1,4}Z
[[nodiscard]] std::size_t image_code(CharScan& scan, std::size_t pos);
// [\t\n]|    |  (four or two spaces)
[[nodiscard]] std::size_t indent(CharScan& scan, std::size_t pos);
// [\p{P}\$\+<=>\^~\|`]+, the second without the backtick
[[nodiscard]] std::size_t falcon_puncts(CharScan& scan, std::size_t pos);
[[nodiscard]] std::size_t default_puncts(CharScan& scan, std::size_t pos);
// [\p{P}!-/:-@\[-`{-~]
[[nodiscard]] std::size_t one_punct(CharScan& scan, std::size_t pos);
// One space at most, then no blank, bracket or sentence mark:  ?[^(\s|.,!?...)]+
[[nodiscard]] std::size_t bloom_word(CharScan& scan, std::size_t pos);

// deepseek-llm: \s? and cased letters; \s? and a class of ASCII and wide punctuation
[[nodiscard]] std::size_t blank_then_cased(CharScan& scan, std::size_t pos);
[[nodiscard]] std::size_t blank_then_wide_punct(CharScan& scan, std::size_t pos);

// Characters of a table of ranges, sorted or not, one or more.
[[nodiscard]] bool is_in(std::span<const CodeRange> ranges, char32_t code);
[[nodiscard]] std::size_t run_in(CharScan& scan, std::size_t pos,
                                 std::span<const CodeRange> ranges);
[[nodiscard]] std::size_t cjk_of_deepseek_llm(CharScan& scan, std::size_t pos);
[[nodiscard]] std::size_t cjk_of_deepseek_v3(CharScan& scan, std::size_t pos);
[[nodiscard]] std::size_t asian_of_afmoe(CharScan& scan, std::size_t pos);
[[nodiscard]] std::size_t hangul_of_youtu(CharScan& scan, std::size_t pos);
[[nodiscard]] std::size_t puncts_of_youtu(CharScan& scan, std::size_t pos);
[[nodiscard]] std::size_t bopomofo_of_youtu(CharScan& scan, std::size_t pos);

// [set]+
template <CharMask kSet>
std::size_t run(CharScan& scan, std::size_t pos) {
    return scan.run(pos, kSet);
}

// [set]{1,kMost}
template <CharMask kSet, int kMost>
std::size_t few(CharScan& scan, std::size_t pos) {
    for (int i = 0; i < kMost; ++i) {
        const ScanChar c = scan.at(pos);
        if ((c.mask & kSet) == 0) break;
        pos += c.bytes;
    }
    return pos;
}

//  ?[set]+ where the set has no space
template <CharMask kSet>
std::size_t space_then(CharScan& scan, std::size_t pos) {
    const std::size_t begin = pos + (scan.byte(pos) == ' ' ? 1 : 0);
    const std::size_t end = scan.run(begin, kSet);
    return end > begin ? end : pos;
}

// \s?[set]+ where the set has no blank
template <CharMask kSet>
std::size_t blank_then(CharScan& scan, std::size_t pos) {
    const ScanChar first = scan.at(pos);
    const std::size_t begin = pos + ((first.mask & kSpace) != 0 ? first.bytes : 0);
    const std::size_t end = scan.run(begin, kSet);
    return end > begin ? end : pos;
}

enum class Tail { kNone, kNewlines, kNewlinesAndSlashes, kOneNewlineOrSlash };

//  ?[^set]+ and a tail of line ends, where the set has the space
template <CharMask kSet, Tail kTail>
std::size_t space_then_outside(CharScan& scan, std::size_t pos) {
    const std::size_t begin = pos + (scan.byte(pos) == ' ' ? 1 : 0);
    std::size_t end = scan.run_outside(begin, kSet);
    if (end == begin) return pos;
    const auto is_tail = [&scan](std::size_t at) {
        const char c = scan.byte(at);
        return c == '\r' || c == '\n' || (kTail != Tail::kNewlines && c == '/');
    };
    if constexpr (kTail == Tail::kOneNewlineOrSlash) {
        if (is_tail(end)) ++end;
    } else if constexpr (kTail != Tail::kNone) {
        while (is_tail(end)) ++end;
    }
    return end;
}

//  ?[set]+[\r\n]*
template <CharMask kSet>
std::size_t space_then_lines(CharScan& scan, std::size_t pos) {
    std::size_t end = space_then<kSet>(scan, pos);
    if (end == pos) return pos;
    while (scan.byte(end) == '\r' || scan.byte(end) == '\n') ++end;
    return end;
}

// [^bar]?[set]+ : one character outside `bar` may lead; it is given back when nothing follows.
template <CharMask kBar, CharMask kSet>
std::size_t led(CharScan& scan, std::size_t pos) {
    const ScanChar first = scan.at(pos);
    if (first.bytes != 0 && (first.mask & kBar) == 0) {
        const std::size_t end = scan.run(pos + first.bytes, kSet);
        if (end > pos + first.bytes) return end;
    }
    return scan.run(pos, kSet);
}

// A word by its case, as o200k does:
//   [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+
//   [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*
// kBut: classes left out of the letters (Han in one family).
template <CharMask kBut>
std::size_t cased_word(CharScan& scan, std::size_t pos);
// The same with a contraction at its end.
template <CharMask kBut>
std::size_t cased_word_contracted(CharScan& scan, std::size_t pos) {
    const std::size_t end = cased_word<kBut>(scan, pos);
    return end > pos ? contraction_any_case(scan, end) : pos;
}
extern template std::size_t cased_word<0>(CharScan&, std::size_t);
extern template std::size_t cased_word<kHan>(CharScan&, std::size_t);

}  // namespace pagoda::text::step
