#pragma once
// ByteMap: GPT-2's way to write any byte as a printable character. Printable Latin-1 bytes stand
// for themselves; the 68 others are U+0100, U+0101, ... in order. Immutable; thread-safe.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pagoda::text {

class ByteMap {
  public:
    [[nodiscard]] static const ByteMap& instance();

    [[nodiscard]] char32_t char_of(unsigned char byte) const { return char_of_[byte]; }
    // The bytes that the text stands for, appended; false (and nothing appended) when it has a
    // character outside the map.
    bool decode(std::string_view text, std::string& out) const;

  private:
    ByteMap();
    static constexpr std::size_t kChars = 0x100 + 68;
    std::array<char32_t, 256> char_of_{};
    std::array<std::int16_t, kChars> byte_of_{};  // -1: no byte
};

}  // namespace pagoda::text
