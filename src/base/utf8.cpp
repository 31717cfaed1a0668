#include "base/utf8.h"

#include <algorithm>

namespace pagoda::base {
namespace {

constexpr char32_t kReplacement = 0xfffd;
constexpr std::string_view kReplacementText = "\xef\xbf\xbd";

std::uint8_t byte_at(std::string_view text, std::size_t index) {
    return static_cast<std::uint8_t>(text[index]);
}

// What a lead byte promises: the length of its sequence and the range of its second byte, which
// is where overlong forms, surrogates and codes above U+10FFFF are kept out. Length 0: no lead.
struct Lead {
    std::uint8_t length = 0;
    std::uint8_t second_min = 0x80;
    std::uint8_t second_max = 0xbf;
};

Lead lead_of(std::uint8_t byte) {
    if (byte < 0x80) return {.length = 1};
    if (byte < 0xc2) return {};
    if (byte < 0xe0) return {.length = 2};
    if (byte == 0xe0) return {.length = 3, .second_min = 0xa0};
    if (byte == 0xed) return {.length = 3, .second_max = 0x9f};
    if (byte < 0xf0) return {.length = 3};
    if (byte == 0xf0) return {.length = 4, .second_min = 0x90};
    if (byte < 0xf4) return {.length = 4};
    if (byte == 0xf4) return {.length = 4, .second_max = 0x8f};
    return {};
}

// Bytes at the start of the text that belong to one character of this lead, at most its length.
std::size_t matching_bytes(std::string_view text, const Lead& lead) {
    std::size_t count = 1;
    while (count < lead.length && count < text.size()) {
        const std::uint8_t low = count == 1 ? lead.second_min : 0x80;
        const std::uint8_t high = count == 1 ? lead.second_max : 0xbf;
        const std::uint8_t byte = byte_at(text, count);
        if (byte < low || byte > high) break;
        ++count;
    }
    return count;
}

// Bytes at the start of the text that are ASCII, found eight at a time.
std::size_t ascii_prefix(std::string_view text) {
    std::size_t count = 0;
    while (count + 8 <= text.size()) {
        std::uint64_t word = 0;
        for (std::size_t byte = 0; byte < 8; ++byte) word |= byte_at(text, count + byte);
        if (word >= 0x80) break;
        count += 8;
    }
    while (count < text.size() && byte_at(text, count) < 0x80) ++count;
    return count;
}

}  // namespace

Utf8Char decode_utf8(std::string_view text) {
    if (text.empty()) return {};
    const std::uint8_t first = byte_at(text, 0);
    if (first < 0x80) return {.code = first, .bytes = 1, .valid = true};
    const Lead lead = lead_of(first);
    const std::size_t count = lead.length == 0 ? 1 : matching_bytes(text, lead);
    if (count != lead.length) {
        return {.code = kReplacement, .bytes = static_cast<std::uint8_t>(count), .valid = false};
    }
    char32_t code = first & (0x7fU >> lead.length);
    for (std::size_t index = 1; index < count; ++index) {
        code = (code << 6) | (byte_at(text, index) & 0x3fU);
    }
    return {.code = code, .bytes = lead.length, .valid = true};
}

void append_utf8(std::string& out, char32_t code) {
    const auto put = [&out](char32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) code = kReplacement;
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xc0 | (code >> 6));
        put(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        put(0xe0 | (code >> 12));
        put(0x80 | ((code >> 6) & 0x3f));
        put(0x80 | (code & 0x3f));
    } else {
        put(0xf0 | (code >> 18));
        put(0x80 | ((code >> 12) & 0x3f));
        put(0x80 | ((code >> 6) & 0x3f));
        put(0x80 | (code & 0x3f));
    }
}

std::size_t valid_utf8_prefix(std::string_view text) {
    std::size_t done = 0;
    while (done < text.size()) {
        done += ascii_prefix(text.substr(done));
        const Utf8Char next = decode_utf8(text.substr(done));
        if (!next.valid) break;
        done += next.bytes;
    }
    return done;
}

bool is_valid_utf8(std::string_view text) {
    return valid_utf8_prefix(text) == text.size();
}

std::int64_t num_characters(std::string_view text) {
    return std::count_if(text.begin(), text.end(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U;
    });
}

std::string replace_invalid_utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const std::size_t valid = valid_utf8_prefix(text);
        out.append(text.substr(0, valid));
        text.remove_prefix(valid);
        if (text.empty()) break;
        out.append(kReplacementText);
        text.remove_prefix(decode_utf8(text).bytes);
    }
    return out;
}

std::size_t complete_utf8_prefix(std::string_view text) {
    // Only the last three bytes can start a character that the end cuts off.
    const std::size_t first = text.size() > 3 ? text.size() - 3 : 0;
    for (std::size_t start = text.size(); start-- > first;) {
        const Lead lead = lead_of(byte_at(text, start));
        if (lead.length == 0) continue;  // a continuation or invalid byte: look further back
        const std::size_t rest = text.size() - start;
        const bool cut = rest < lead.length && matching_bytes(text.substr(start), lead) == rest;
        return cut ? start : text.size();
    }
    return text.size();
}

std::string_view cut_utf8(std::string_view text, std::size_t most_bytes) {
    if (text.size() <= most_bytes) return text;
    const std::string_view beginning = text.substr(0, most_bytes);
    return beginning.substr(0, complete_utf8_prefix(beginning));
}

}  // namespace pagoda::base
