#include "text/tokenize/char_pairs.h"

#include <bit>

#include "base/utf8.h"
#include "text/tokenize/token_map.h"

namespace pagoda::text {

CharPairs::CharPairs(std::size_t token_bytes)
    : slots_(std::bit_ceil(token_bytes + token_bytes / 2 + 8), 0), mask_(slots_.size() - 1) {}

std::size_t CharPairs::probe(std::uint64_t key) const {
    std::size_t at = mix_bits(key) & mask_;
    while (slots_[at] != 0 && slots_[at] != key) at = (at + 1) & mask_;
    return at;
}

void CharPairs::add_token(std::string_view token) {
    char32_t before = 0;
    for (bool is_first = true; !token.empty(); is_first = false) {
        const base::Utf8Char c = base::decode_utf8(token);
        if (!is_first) slots_[probe(pack(before, c.code))] = pack(before, c.code);
        before = c.code;
        token.remove_prefix(c.bytes);
    }
}

}  // namespace pagoda::text
