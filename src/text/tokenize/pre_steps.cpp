#include "text/tokenize/pre_steps.h"

namespace pagoda::text::step {
namespace {

constexpr CodeRange kCjkDeepseekLlm[] = {{0x4E00, 0x9FA5}, {0x0800, 0x4E00}, {0xAC00, 0xD7FF}};
constexpr CodeRange kCjkDeepseekV3[] = {{0x4E00, 0x9FA5}, {0x3040, 0x30FF}};
constexpr CodeRange kAsianAfmoe[] = {
    {0x4E00, 0x9FFF}, {0x3400, 0x4DBF}, {0xF900, 0xFAFF}, {0x3040, 0x309F}, {0x30A0, 0x30FF},
    {0xFF65, 0xFF9F}, {0x2F00, 0x2FDF}, {0x0E40, 0x0E7F}, {0x0E80, 0x0EFF}, {0x1780, 0x17FF},
    {0x1000, 0x109F}, {0xAA60, 0xAA7F}, {0xA9E0, 0xA9FF}, {0xAC00, 0xD7AF}, {0x1100, 0x11FF},
};
constexpr CodeRange kHangulYoutu[] = {{0xAC00, 0xD7A3}, {0x3131, 0x318E}};
constexpr CodeRange kPunctYoutu[] = {
    {0xFF01, 0xFF01}, {0x2026, 0x2026}, {0x201C, 0x201D}, {0x2018, 0x2019}, {0x2014, 0x2014},
    {0xFF1A, 0xFF1B}, {0xFF0C, 0xFF0C}, {0x3001, 0x303F}, {0xFE30, 0xFE4F},
};
constexpr CodeRange kBopomofoYoutu[] = {{0x3105, 0x312F}};
constexpr CodeRange kWidePunct[] = {
    {0x21, 0x2F},     {0x3A, 0x7E},     {0xFF01, 0xFF0F},
    {0xFF1A, 0xFF5E}, {0x2018, 0x201F}, {0x3000, 0x3002},
};
// Letters that have case, as the family's files spell them out (an older Unicode, no Armenian
// small letters).
constexpr CodeRange kCasedLetters[] = {
    {0x0041, 0x005A},   {0x0061, 0x007A},   {0x00B5, 0x00B5},   {0x00C0, 0x00D6},
    {0x00D8, 0x00F6},   {0x00F8, 0x01BA},   {0x01BC, 0x01BF},   {0x01C4, 0x0293},
    {0x0295, 0x02AF},   {0x0370, 0x0373},   {0x0376, 0x0376},   {0x0377, 0x0377},
    {0x037B, 0x037D},   {0x037F, 0x037F},   {0x0386, 0x0386},   {0x0388, 0x038A},
    {0x038C, 0x038C},   {0x038E, 0x03A1},   {0x03A3, 0x03F5},   {0x03F7, 0x0481},
    {0x048A, 0x052F},   {0x0531, 0x0556},   {0x10A0, 0x10C5},   {0x13A0, 0x13F5},
    {0x13F8, 0x13FD},   {0x1C90, 0x1CBA},   {0x1CBD, 0x1CBF},   {0x1D00, 0x1D2B},
    {0x1D6B, 0x1D77},   {0x1D79, 0x1D9A},   {0x1E00, 0x1F15},   {0x1F18, 0x1F1D},
    {0x1F20, 0x1F45},   {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},   {0x1F59, 0x1F59},
    {0x1F5B, 0x1F5B},   {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},
    {0x1FB6, 0x1FBC},   {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FC4},   {0x1FC6, 0x1FCC},
    {0x1FD0, 0x1FD3},   {0x1FD6, 0x1FDB},   {0x1FE0, 0x1FEC},   {0x1FF2, 0x1FF4},
    {0x1FF6, 0x1FFC},   {0x2102, 0x2102},   {0x2107, 0x2107},   {0x210A, 0x2113},
    {0x2115, 0x2115},   {0x2119, 0x211D},   {0x2124, 0x2124},   {0x2126, 0x2126},
    {0x2128, 0x2128},   {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},
    {0x213C, 0x213F},   {0x2145, 0x2149},   {0x214E, 0x214E},   {0x2183, 0x2183},
    {0x2184, 0x2184},   {0x2C00, 0x2C7B},   {0x2C7E, 0x2CE4},   {0x2CEB, 0x2CEE},
    {0x2CF2, 0x2CF2},   {0x2CF3, 0x2CF3},   {0xA640, 0xA66D},   {0xA680, 0xA69B},
    {0xA722, 0xA76F},   {0xA771, 0xA787},   {0xA78B, 0xA78E},   {0xAB70, 0xABBF},
    {0xFB00, 0xFB06},   {0xFB13, 0xFB17},   {0xFF21, 0xFF3A},   {0xFF41, 0xFF5A},
    {0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB}, {0x10C80, 0x10CB2},
    {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943},
};
// What a word of the bloom family can't hold, beside blanks.
constexpr char32_t kBloomStops[] = {'(',    '|',    '.',    ',',    '!',    '?',    0x2026,
                                    0x3002, 0xFF0C, 0x3001, 0x0964, 0x06D4, 0x060C, ')'};

bool is_ascii_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_ascii_punct(char c) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

std::size_t puncts_or(CharScan& scan, std::size_t pos, std::string_view others) {
    for (ScanChar c = scan.at(pos); c.bytes != 0; c = scan.at(pos)) {
        const bool is_other =
            c.code < 0x80 && others.find(static_cast<char>(c.code)) != others.npos;
        if ((c.mask & kPunct) == 0 && !is_other) break;
        pos += c.bytes;
    }
    return pos;
}

std::size_t blank_then_ranges(CharScan& scan, std::size_t pos, std::span<const CodeRange> ranges) {
    const ScanChar first = scan.at(pos);
    if ((first.mask & kSpace) != 0) {
        const std::size_t end = run_in(scan, pos + first.bytes, ranges);
        if (end > pos + first.bytes) return end;
    }
    return run_in(scan, pos, ranges);  // a wide space is in one of the tables itself
}

}  // namespace

std::size_t contraction(CharScan& scan, std::size_t pos) {
    if (scan.byte(pos) != '\'') return pos;
    const char first = scan.byte(pos + 1);
    const char second = scan.byte(pos + 2);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return pos + 2;
    if ((first == 'r' || first == 'v') && second == 'e') return pos + 3;
    return first == 'l' && second == 'l' ? pos + 3 : pos;
}

std::size_t contraction_any_case(CharScan& scan, std::size_t pos) {
    if (scan.byte(pos) != '\'') return pos;
    const auto lower = [&scan](std::size_t at) {
        const char c = scan.byte(at);
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    const char first = lower(pos + 1);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return pos + 2;
    if ((first == 'r' || first == 'v') && lower(pos + 2) == 'e') return pos + 3;
    if (first == 'l' && lower(pos + 2) == 'l') return pos + 3;
    constexpr char32_t kLongS = 0x017F;
    const ScanChar wide = scan.at(pos + 1);
    return wide.code == kLongS ? pos + 1 + wide.bytes : pos;
}

std::size_t lines(CharScan& scan, std::size_t pos) {
    if ((scan.at(pos).mask & kSpace) == 0) return pos;
    const std::size_t end = scan.blanks(pos).newline_end;
    return end > pos ? end : pos;
}

std::size_t blanks_before_blank(CharScan& scan, std::size_t pos) {
    if ((scan.at(pos).mask & kSpace) == 0) return pos;
    const CharScan::BlankRun& run = scan.blanks(pos);
    return run.end == scan.end() ? run.end : run.last_begin;
}

std::size_t blanks(CharScan& scan, std::size_t pos) {
    return (scan.at(pos).mask & kSpace) == 0 ? pos : scan.blanks(pos).end;
}

std::size_t blanks_at_end(CharScan& scan, std::size_t pos) {
    if ((scan.at(pos).mask & kSpace) == 0) return pos;
    const std::size_t end = scan.blanks(pos).end;
    return end == scan.end() ? end : pos;
}

std::size_t blanks_in_powers(CharScan& scan, std::size_t pos) {
    if ((scan.at(pos).mask & kSpace) == 0) return pos;
    const CharScan::BlankRun run = scan.blanks(pos);
    // Blanks that another blank or the end of the piece follows.
    const std::size_t safe_end = run.end == scan.end() ? run.end : run.last_begin;
    std::size_t at = pos;
    std::size_t best = pos;
    for (int count = 1; count <= 512 && at < safe_end; ++count) {
        at += scan.at(at).bytes;
        const bool is_power = (count & (count - 1)) == 0;
        if (is_power) best = at;
    }
    return best > pos ? best : pos + scan.at(pos).bytes;
}

std::size_t newline(CharScan& scan, std::size_t pos) {
    return scan.byte(pos) == '\r' || scan.byte(pos) == '\n' ? pos + 1 : pos;
}

std::size_t line_or_feeds(CharScan& scan, std::size_t pos) {
    const bool is_feed = scan.byte(pos) == '\n';
    while (pos < scan.end() && (scan.byte(pos) == '\n') == is_feed) ++pos;
    return pos;
}

std::size_t non_blanks(CharScan& scan, std::size_t pos) {
    return scan.run_outside(pos, kSpace);
}

std::size_t three_ascii_digits(CharScan& scan, std::size_t pos) {
    for (std::size_t i = 0; i < 3; ++i) {
        const char c = scan.byte(pos + i);
        if (c < '0' || c > '9') return pos;
    }
    return pos + 3;
}

std::size_t digits_from_end(CharScan& scan, std::size_t pos) {
    if ((scan.at(pos).mask & kDigit) == 0) return pos;
    const std::size_t count = scan.digits(pos).count;
    std::size_t end = pos;
    for (std::size_t i = 0; i < (count % 3 == 0 ? 3 : count % 3); ++i) end += scan.at(end).bytes;
    return end;
}

std::size_t between_group_starts(CharScan& scan, std::size_t pos) {
    const auto starts_group = [&scan](std::size_t at) {
        return (scan.at(at).mask & kDigit) != 0 && scan.digits(at).count % 3 == 0;
    };
    if (!starts_group(pos)) return pos;
    do {
        pos += scan.at(pos).bytes;
    } while (pos < scan.end() && !starts_group(pos));
    return pos;
}

std::size_t digits_from_word_end(CharScan& scan, std::size_t pos) {
    if ((scan.at(pos).mask & kDigit) == 0) return pos;
    const bool ends_word = (scan.at(scan.digits(pos).end).mask & kWordChar) == 0;
    return ends_word ? digits_from_end(scan, pos) : pos;
}

std::size_t punct_then_ascii_word(CharScan& scan, std::size_t pos) {
    if (!is_ascii_punct(scan.byte(pos))) return pos;
    std::size_t end = pos + 1;
    while (is_ascii_letter(scan.byte(end))) ++end;
    return end > pos + 1 ? end : pos;
}

std::size_t spaced_words(CharScan& scan, std::size_t pos) {
    const auto letters = [&scan](std::size_t at) {
        while ((scan.at(at).mask & kLetter) != 0) {
            at = scan.run(scan.run(at, kLetter), kMark);
            const bool goes_on = scan.byte(at) == ' ' && (scan.at(at + 1).mask & kLetter) != 0;
            if (goes_on) ++at;
        }
        return at;
    };
    const ScanChar first = scan.at(pos);
    if (first.bytes != 0 && (first.mask & (kNewline | kLetter | kNumber)) == 0) {
        const std::size_t end = letters(pos + first.bytes);
        return end > pos + first.bytes ? end : pos;
    }
    return letters(pos);
}

std::size_t sentinel(CharScan& scan, std::size_t pos) {
    constexpr std::string_view kOpen = "<sentinel:";
    for (std::size_t i = 0; i < kOpen.size(); ++i) {
        if (scan.byte(pos + i) != kOpen[i]) return pos;
    }
    const std::size_t digits = pos + kOpen.size();
    std::size_t end = digits;
    while (scan.byte(end) >= '0' && scan.byte(end) <= '9') ++end;
    return end > digits && scan.byte(end) == '>' ? end + 1 : pos;
}

std::size_t image_code(CharScan& scan, std::size_t pos) {
    constexpr std::string_view kOpen = "IMGIMG";
    for (std::size_t i = 0; i < kOpen.size(); ++i) {
        if (scan.byte(pos + i) != kOpen[i]) return pos;
    }
    const std::size_t letters = pos + kOpen.size();
    std::size_t end = letters;
    while (end < letters + 4 && scan.byte(end) >= 'A' && scan.byte(end) <= 'I') ++end;
    return end > letters && scan.byte(end) == 'Z' ? end + 1 : pos;
}

std::size_t indent(CharScan& scan, std::size_t pos) {
    if (scan.byte(pos) == '\t' || scan.byte(pos) == '\n') return pos + 1;
    std::size_t end = pos;
    while (end < pos + 4 && scan.byte(end) == ' ') ++end;
    return end == pos + 4 ? end : (end >= pos + 2 ? pos + 2 : pos);
}

std::size_t falcon_puncts(CharScan& scan, std::size_t pos) {
    return puncts_or(scan, pos, "$+<=>^~|`");
}

std::size_t default_puncts(CharScan& scan, std::size_t pos) {
    return puncts_or(scan, pos, "$+<=>^~|");
}

std::size_t one_punct(CharScan& scan, std::size_t pos) {
    const ScanChar c = scan.at(pos);
    const bool is_ascii = c.code < 0x80 && is_ascii_punct(static_cast<char>(c.code));
    return (c.mask & kPunct) != 0 || is_ascii ? pos + c.bytes : pos;
}

std::size_t bloom_word(CharScan& scan, std::size_t pos) {
    const auto in_word = [](const ScanChar& c) {
        if (c.bytes == 0 || (c.mask & kSpace) != 0) return false;
        for (const char32_t stop : kBloomStops) {
            if (c.code == stop) return false;
        }
        return true;
    };
    const std::size_t begin = pos + (scan.byte(pos) == ' ' ? 1 : 0);
    std::size_t end = begin;
    for (ScanChar c = scan.at(end); in_word(c); c = scan.at(end)) end += c.bytes;
    return end > begin ? end : pos;
}

bool is_in(std::span<const CodeRange> ranges, char32_t code) {
    for (const CodeRange& range : ranges) {
        if (code >= range.first && code <= range.last) return true;
    }
    return false;
}

std::size_t run_in(CharScan& scan, std::size_t pos, std::span<const CodeRange> ranges) {
    for (ScanChar c = scan.at(pos); c.bytes != 0 && is_in(ranges, c.code); c = scan.at(pos)) {
        pos += c.bytes;
    }
    return pos;
}

std::size_t blank_then_cased(CharScan& scan, std::size_t pos) {
    return blank_then_ranges(scan, pos, kCasedLetters);
}
std::size_t blank_then_wide_punct(CharScan& scan, std::size_t pos) {
    return blank_then_ranges(scan, pos, kWidePunct);
}
std::size_t cjk_of_deepseek_llm(CharScan& scan, std::size_t pos) {
    return run_in(scan, pos, kCjkDeepseekLlm);
}
std::size_t cjk_of_deepseek_v3(CharScan& scan, std::size_t pos) {
    return run_in(scan, pos, kCjkDeepseekV3);
}
std::size_t asian_of_afmoe(CharScan& scan, std::size_t pos) {
    return run_in(scan, pos, kAsianAfmoe);
}
std::size_t hangul_of_youtu(CharScan& scan, std::size_t pos) {
    return run_in(scan, pos, kHangulYoutu);
}
std::size_t puncts_of_youtu(CharScan& scan, std::size_t pos) {
    return run_in(scan, pos, kPunctYoutu);
}
std::size_t bopomofo_of_youtu(CharScan& scan, std::size_t pos) {
    return run_in(scan, pos, kBopomofoYoutu);
}

namespace {

// The word that starts right at pos. Greedy runs with one step back: when no small letter follows
// the run of capitals, the last caseless character of that run may stand for it.
std::size_t cased_run(const CharScan& scan, std::size_t pos, CharMask but, bool needs_small) {
    constexpr CharMask kCaseless = kModifier | kOtherLetter | kMark;
    constexpr CharMask kCapital = kUpper | kTitle | kCaseless;
    constexpr CharMask kSmall = kLower | kCaseless;
    const auto run_of = [&scan, but](std::size_t at, CharMask set, std::size_t* after_caseless) {
        for (ScanChar c = scan.at(at); (c.mask & set) != 0 && (c.mask & but) == 0;
             c = scan.at(at)) {
            at += c.bytes;
            if (after_caseless != nullptr && (c.mask & kCaseless) != 0) *after_caseless = at;
        }
        return at;
    };
    std::size_t after_caseless = pos;
    const std::size_t capitals_end = run_of(pos, kCapital, &after_caseless);
    const std::size_t end = run_of(capitals_end, kSmall, nullptr);
    if (!needs_small) return capitals_end > pos ? end : pos;
    return end > capitals_end ? end : after_caseless;
}

}  // namespace

template <CharMask kBut>
std::size_t cased_word(CharScan& scan, std::size_t pos) {
    const ScanChar first = scan.at(pos);
    const bool has_lead = first.bytes != 0 && (first.mask & (kNewline | kLetter | kNumber)) == 0;
    for (const bool needs_small : {true, false}) {
        if (has_lead) {
            const std::size_t begin = pos + first.bytes;
            const std::size_t end = cased_run(scan, begin, kBut, needs_small);
            if (end > begin) return end;
        }
        const std::size_t end = cased_run(scan, pos, kBut, needs_small);
        if (end > pos) return end;
    }
    return pos;
}

template std::size_t cased_word<0>(CharScan&, std::size_t);
template std::size_t cased_word<kHan>(CharScan&, std::size_t);

}  // namespace pagoda::text::step
