#pragma once
// CharScan: reads one piece of valid UTF-8 character by character with its classes, and remembers
// the run of blanks and of digits it last measured, so that rules that look ahead over a run cost
// linear time in all. Owned by one thread; the text must outlive it.

#include <cstddef>
#include <string_view>

#include "text/tokenize/char_class.h"

namespace pagoda::text {

struct ScanChar {
    char32_t code = 0;
    CharMask mask = 0;
    std::uint32_t bytes = 0;  // 0 at the end of the piece
};

struct CodeAt {
    char32_t code = 0;
    std::uint32_t bytes = 0;
};

// One character of valid UTF-8 that starts at `data`.
[[nodiscard]] inline CodeAt decode_valid_utf8(const char* data) {
    const auto tail = [data](int i) { return static_cast<unsigned char>(data[i]) & 0x3FU; };
    const unsigned lead = static_cast<unsigned char>(data[0]);
    if (lead < 0x80) return {lead, 1};
    if (lead < 0xE0) return {(lead & 0x1FU) << 6 | tail(1), 2};
    if (lead < 0xF0) return {(lead & 0x0FU) << 12 | tail(1) << 6 | tail(2), 3};
    return {(lead & 0x07U) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4};
}

[[nodiscard]] inline ScanChar read_valid_utf8(const CharTable& table, const char* data) {
    const CodeAt c = decode_valid_utf8(data);
    if (c.bytes == 1) return {c.code, table.ascii(static_cast<unsigned char>(c.code)), 1};
    return {c.code, table[c.code], c.bytes};
}

class CharScan {
  public:
    CharScan(std::string_view text, const CharTable& table) : text_(text), table_(table) {}

    [[nodiscard]] std::size_t end() const { return text_.size(); }
    [[nodiscard]] ScanChar at(std::size_t pos) const {
        return pos < text_.size() ? read_valid_utf8(table_, text_.data() + pos) : ScanChar{};
    }
    // The byte at pos, 0 past the end.
    [[nodiscard]] char byte(std::size_t pos) const {
        return pos < text_.size() ? text_[pos] : '\0';
    }
    // End of the longest run from pos whose characters are in any class of the set ...
    [[nodiscard]] std::size_t run(std::size_t pos, CharMask set) const {
        for (ScanChar c = at(pos); (c.mask & set) != 0; c = at(pos)) pos += c.bytes;
        return pos;
    }
    // ... or in none of it.
    [[nodiscard]] std::size_t run_outside(std::size_t pos, CharMask set) const {
        for (ScanChar c = at(pos); c.bytes != 0 && (c.mask & set) == 0; c = at(pos)) pos += c.bytes;
        return pos;
    }

    struct BlankRun {
        std::size_t begin = 0, end = 0;
        std::size_t last_begin = 0;   // of its last character
        std::size_t newline_end = 0;  // after its last CR or LF; 0: it has none
    };
    // The run of White_Space around pos, which is in it or at its end.
    [[nodiscard]] const BlankRun& blanks(std::size_t pos) {
        if (pos < blanks_.begin || pos >= blanks_.end) measure_blanks(pos);
        return blanks_;
    }
    struct DigitRun {
        std::size_t begin = 0, end = 0;
        std::size_t count = 0;  // characters
    };
    // The decimal digits from pos, which is in their run, to its end.
    [[nodiscard]] const DigitRun& digits(std::size_t pos) {
        if (pos < digits_.begin || pos >= digits_.end) {
            digits_ = {pos, pos, 0};
            for (ScanChar c = at(pos); (c.mask & kDigit) != 0; c = at(digits_.end)) {
                digits_.end += c.bytes;
                ++digits_.count;
            }
        }
        for (; digits_.begin < pos; --digits_.count) digits_.begin += at(digits_.begin).bytes;
        return digits_;
    }

  private:
    void measure_blanks(std::size_t pos) {
        blanks_ = {pos, pos, pos, 0};
        for (ScanChar c = at(pos); (c.mask & kSpace) != 0; c = at(blanks_.end)) {
            blanks_.last_begin = blanks_.end;
            blanks_.end += c.bytes;
            if ((c.mask & kNewline) != 0) blanks_.newline_end = blanks_.end;
        }
    }

    std::string_view text_;
    const CharTable& table_;  // outlives every scan
    BlankRun blanks_;
    DigitRun digits_;
};

}  // namespace pagoda::text
