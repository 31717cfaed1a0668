#include "text/jinja/unicode.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <utf8proc.h>

#include "base/utf8.h"

namespace pagoda::text::jinja {

namespace {

utf8proc_category_t category_of(char32_t code) {
    return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

// Characters whose upper case is several characters (SpecialCasing.txt, unconditional rows that
// real text meets).
struct LongUpper {
    char32_t code;
    std::string_view upper;
    std::string_view title;
};
constexpr std::array<LongUpper, 11> kLongUpper{{
    {0x00DF, "SS", "Ss"},
    {0x0149, "\xCA\xBCN", "\xCA\xBCN"},
    {0x01F0, "J\xCC\x8C", "J\xCC\x8C"},
    {0x0587, "\xD4\xB5\xD5\x92", "\xD4\xB5\xD6\x82"},
    {0xFB00, "FF", "Ff"},
    {0xFB01, "FI", "Fi"},
    {0xFB02, "FL", "Fl"},
    {0xFB03, "FFI", "Ffi"},
    {0xFB04, "FFL", "Ffl"},
    {0xFB05, "ST", "St"},
    {0xFB06, "ST", "St"},
}};

const LongUpper* long_upper(char32_t code) {
    const auto* const found =
        std::find_if(kLongUpper.begin(), kLongUpper.end(),
                     [code](const LongUpper& row) { return row.code == code; });
    return found == kLongUpper.end() ? nullptr : found;
}

bool is_cased(char32_t code) {
    return is_lower(code) || is_upper(code) || is_title(code);
}

bool is_case_ignorable(char32_t code) {
    if (code == '\'' || code == '.' || code == ':' || code == 0x2019 || code == 0xB7) return true;
    switch (category_of(code)) {
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_ME:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_SK:
            return true;
        default:
            return false;
    }
}

// A capital sigma is final when a cased letter precedes it and none follows (Unicode 3.13).
bool is_final_sigma(std::string_view text, std::size_t at, std::size_t bytes) {
    bool has_before = false;
    for (std::size_t end = at; end > 0;) {
        end = previous_offset(text, end);
        const char32_t code = first_code_point(text.substr(end)).code;
        if (is_case_ignorable(code)) continue;
        has_before = is_cased(code);
        break;
    }
    if (!has_before) return false;
    for (std::size_t next = at + bytes; next < text.size();) {
        const CodePoint point = first_code_point(text.substr(next));
        next += point.bytes;
        if (is_case_ignorable(point.code)) continue;
        return !is_cased(point.code);
    }
    return true;
}

void append_lower(std::string& out, std::string_view text, std::size_t at, CodePoint point) {
    if (point.code == 0x0130) {
        out += "i\xCC\x87";
    } else if (point.code == 0x03A3) {
        base::append_utf8(out, is_final_sigma(text, at, point.bytes) ? 0x03C2 : 0x03C3);
    } else {
        base::append_utf8(out, static_cast<char32_t>(
                                   utf8proc_tolower(static_cast<utf8proc_int32_t>(point.code))));
    }
}

void append_upper(std::string& out, char32_t code) {
    if (const LongUpper* row = long_upper(code)) {
        out += row->upper;
    } else {
        base::append_utf8(
            out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code))));
    }
}

void append_title(std::string& out, char32_t code) {
    if (const LongUpper* row = long_upper(code)) {
        out += row->title;
    } else {
        base::append_utf8(
            out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code))));
    }
}

template <class Visit>
void for_each_code_point(std::string_view text, const Visit& visit) {
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint point = first_code_point(text.substr(at));
        visit(at, point);
        at += point.bytes;
    }
}

}  // namespace

std::size_t count_code_points(std::string_view text) {
    std::size_t count = 0;
    for (const char byte : text) count += (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
    return count;
}

std::size_t offset_of(std::string_view text, std::size_t index) {
    std::size_t at = 0;
    for (; at < text.size(); ++at) {
        if ((static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) continue;
        if (index == 0) break;
        --index;
    }
    return at;
}

CodePoint first_code_point(std::string_view text) {
    const auto byte = static_cast<unsigned char>(text[0]);
    if (byte < 0x80) return {byte, 1};
    const base::Utf8Char decoded = base::decode_utf8(text);
    return {decoded.code, std::max<std::size_t>(decoded.bytes, 1)};
}

std::size_t previous_offset(std::string_view text, std::size_t end) {
    --end;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    return end;
}

std::string reversed(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t end = text.size(); end > 0;) {
        const std::size_t begin = previous_offset(text, end);
        out.append(text.substr(begin, end - begin));
        end = begin;
    }
    return out;
}

bool is_space(char32_t code) {
    if (code < 0x80) return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20);
    return code == 0x85 || code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) ||
           code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_line_break(char32_t code) {
    return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
           code == 0x2028 || code == 0x2029;
}

bool is_alpha(char32_t code) {
    if (code < 0x80) return (code | 0x20U) >= 'a' && (code | 0x20U) <= 'z';
    const auto category = category_of(code);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t code) {
    if (code < 0x80) return code >= '0' && code <= '9';
    return category_of(code) == UTF8PROC_CATEGORY_ND;
}

bool is_digit(char32_t code) {
    return is_decimal(code) || code == 0xB2 || code == 0xB3 || code == 0xB9 || code == 0x2070 ||
           (code >= 0x2074 && code <= 0x2079) || (code >= 0x2080 && code <= 0x2089) ||
           (code >= 0x2460 && code <= 0x2468);
}

bool is_numeric(char32_t code) {
    if (is_digit(code)) return true;
    const auto category = category_of(code);
    return category == UTF8PROC_CATEGORY_NL || category == UTF8PROC_CATEGORY_NO;
}

bool is_alnum(char32_t code) {
    return is_alpha(code) || is_numeric(code);
}

bool is_lower(char32_t code) {
    if (code < 0x80) return code >= 'a' && code <= 'z';
    return category_of(code) == UTF8PROC_CATEGORY_LL || code == 0xAA || code == 0xBA;
}

bool is_upper(char32_t code) {
    if (code < 0x80) return code >= 'A' && code <= 'Z';
    return category_of(code) == UTF8PROC_CATEGORY_LU;
}

bool is_title(char32_t code) {
    return code >= 0x80 && category_of(code) == UTF8PROC_CATEGORY_LT;
}

bool is_printable(char32_t code) {
    if (code < 0x80) return code >= 0x20 && code != 0x7F;
    switch (category_of(code)) {
        case UTF8PROC_CATEGORY_CC:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_CS:
        case UTF8PROC_CATEGORY_CO:
        case UTF8PROC_CATEGORY_CN:
        case UTF8PROC_CATEGORY_ZL:
        case UTF8PROC_CATEGORY_ZP:
        case UTF8PROC_CATEGORY_ZS:
            return false;
        default:
            return true;
    }
}

bool is_identifier_start(char32_t code) {
    return code == '_' || is_alpha(code) ||
           (code >= 0x80 && category_of(code) == UTF8PROC_CATEGORY_NL);
}

bool is_word(char32_t code) {
    return code == '_' || is_alnum(code);
}

std::string to_lower(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for_each_code_point(text, [&](std::size_t at, CodePoint point) {
        if (point.code < 0x80) {
            out += static_cast<char>(is_upper(point.code) ? point.code + 32 : point.code);
        } else {
            append_lower(out, text, at, point);
        }
    });
    return out;
}

std::string to_upper(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for_each_code_point(text, [&](std::size_t, CodePoint point) {
        if (point.code < 0x80) {
            out += static_cast<char>(is_lower(point.code) ? point.code - 32 : point.code);
        } else {
            append_upper(out, point.code);
        }
    });
    return out;
}

std::string to_title(std::string_view text) {
    std::string out;
    bool previous_is_cased = false;
    for_each_code_point(text, [&](std::size_t at, CodePoint point) {
        if (previous_is_cased) {
            append_lower(out, text, at, point);
        } else {
            append_title(out, point.code);
        }
        previous_is_cased = is_cased(point.code);
    });
    return out;
}

std::string to_capitalized(std::string_view text) {
    std::string out;
    for_each_code_point(text, [&](std::size_t at, CodePoint point) {
        if (at == 0) {
            append_title(out, point.code);
        } else {
            append_lower(out, text, at, point);
        }
    });
    return out;
}

std::string swap_case(std::string_view text) {
    std::string out;
    for_each_code_point(text, [&](std::size_t at, CodePoint point) {
        if (is_upper(point.code)) {
            append_lower(out, text, at, point);
        } else {
            append_upper(out, point.code);
        }
    });
    return out;
}

std::string fold_case(std::string_view text) {
    utf8proc_uint8_t* folded = nullptr;
    const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                   static_cast<utf8proc_ssize_t>(text.size()), &folded,
                                   static_cast<utf8proc_option_t>(UTF8PROC_CASEFOLD));
    if (size < 0 || folded == nullptr) return to_lower(text);
    std::string out(reinterpret_cast<const char*>(folded), static_cast<std::size_t>(size));
    std::free(folded);  // NOLINT: utf8proc allocates with malloc
    return out;
}

namespace {

template <class Matches>
std::string_view strip_while(std::string_view text, Side side, const Matches& matches) {
    while (side != Side::kRight && !text.empty()) {
        const CodePoint point = first_code_point(text);
        if (!matches(point.code)) break;
        text.remove_prefix(point.bytes);
    }
    while (side != Side::kLeft && !text.empty()) {
        const std::size_t at = previous_offset(text, text.size());
        if (!matches(first_code_point(text.substr(at)).code)) break;
        text = text.substr(0, at);
    }
    return text;
}

}  // namespace

std::string_view strip_space(std::string_view text, Side side) {
    return strip_while(text, side, [](char32_t code) { return is_space(code); });
}

std::string_view strip_characters(std::string_view text, std::string_view characters, Side side) {
    std::vector<char32_t> set;
    for_each_code_point(characters,
                        [&](std::size_t, CodePoint point) { set.push_back(point.code); });
    std::sort(set.begin(), set.end());
    return strip_while(text, side, [&set](char32_t code) {
        return std::binary_search(set.begin(), set.end(), code);
    });
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
    std::vector<std::string_view> lines;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint point = first_code_point(text.substr(at));
        std::size_t end = at + point.bytes;
        if (is_line_break(point.code)) {
            if (point.code == '\r' && end < text.size() && text[end] == '\n') ++end;
            lines.push_back(text.substr(begin, (keep_ends ? end : at) - begin));
            begin = end;
        }
        at = end;
    }
    if (begin < text.size()) lines.push_back(text.substr(begin));
    return lines;
}

}  // namespace pagoda::text::jinja
