#pragma once
// CharTable: which Unicode classes a character belongs to, as the split rules ask for them. A
// two-level table over utf8proc's categories, built once and then read-only; thread-safe.

#include <array>
#include <cstdint>
#include <vector>

namespace pagoda::text {

using CharMask = std::uint16_t;

inline constexpr CharMask kUpper = 1U << 0;             // Lu
inline constexpr CharMask kLower = 1U << 1;             // Ll
inline constexpr CharMask kTitle = 1U << 2;             // Lt
inline constexpr CharMask kModifier = 1U << 3;          // Lm
inline constexpr CharMask kOtherLetter = 1U << 4;       // Lo
inline constexpr CharMask kMark = 1U << 5;              // Mn, Mc, Me
inline constexpr CharMask kDigit = 1U << 6;             // Nd
inline constexpr CharMask kOtherNumber = 1U << 7;       // Nl, No
inline constexpr CharMask kPunct = 1U << 8;             // P*
inline constexpr CharMask kSymbol = 1U << 9;            // S*
inline constexpr CharMask kSpace = 1U << 10;            // White_Space
inline constexpr CharMask kNewline = 1U << 11;          // CR and LF only
inline constexpr CharMask kHan = 1U << 12;              // script Han
inline constexpr CharMask kFormatOrControl = 1U << 13;  // Cc, Cf, Co, Cs
inline constexpr CharMask kConnector = 1U << 14;        // Pc

inline constexpr CharMask kLetter = kUpper | kLower | kTitle | kModifier | kOtherLetter;
inline constexpr CharMask kNumber = kDigit | kOtherNumber;
inline constexpr CharMask kWordChar = kLetter | kMark | kNumber | kConnector;

class CharTable {
  public:
    [[nodiscard]] static const CharTable& instance();

    [[nodiscard]] CharMask operator[](char32_t code) const {
        if (code >= kCodes) return 0;
        return blocks_[(std::size_t{block_of_[code >> kShift]} << kShift) | (code & (kBlock - 1))];
    }
    [[nodiscard]] CharMask ascii(unsigned char code) const { return blocks_[code]; }

  private:
    static constexpr char32_t kCodes = 0x110000;
    static constexpr unsigned kShift = 7;
    static constexpr char32_t kBlock = 1U << kShift;

    CharTable();

    std::array<std::uint16_t, (kCodes >> kShift)> block_of_{};
    std::vector<CharMask> blocks_;  // block 0 is ASCII
};

}  // namespace pagoda::text
