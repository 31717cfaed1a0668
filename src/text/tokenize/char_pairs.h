#pragma once
// CharPairs: the pairs of neighbouring characters that occur inside some token. Between two others
// no token can reach across, so a text may be cut there and its parts tokenized by themselves: the
// same ids, in small pieces. Filled once, then read-only and thread-safe.

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenize/char_scan.h"

namespace pagoda::text {

class CharPairs {
  public:
    // token_bytes: of all tokens together, an upper bound for the pairs.
    explicit CharPairs(std::size_t token_bytes);
    void add_token(std::string_view token);
    [[nodiscard]] bool contains(char32_t left, char32_t right) const {
        const std::uint64_t key = pack(left, right);
        return slots_[probe(key)] == key;
    }

  private:
    // Never 0: 21 bits each, and one more that is always set.
    static std::uint64_t pack(char32_t left, char32_t right) {
        return std::uint64_t{1} << 63 | std::uint64_t{left} << 21 | right;
    }
    [[nodiscard]] std::size_t probe(std::uint64_t key) const;

    std::vector<std::uint64_t> slots_;
    std::size_t mask_;
};

// Calls bool word(std::string_view) for the parts of valid UTF-8 in order, until one says false.
template <class Word>
bool for_each_part(std::string_view text, const CharPairs& pairs, const Word& word) {
    std::size_t begin = 0;
    char32_t before = 0;
    for (std::size_t pos = 0; pos < text.size();) {
        const CodeAt c = decode_valid_utf8(text.data() + pos);
        if (pos > begin && !pairs.contains(before, c.code)) {
            if (!word(text.substr(begin, pos - begin))) return false;
            begin = pos;
        }
        before = c.code;
        pos += c.bytes;
    }
    return begin == text.size() || word(text.substr(begin));
}

}  // namespace pagoda::text
