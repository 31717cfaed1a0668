#pragma once
// SpecialTokens: finds the control and user-defined tokens that a text spells, leftmost and
// longest first. Immutable and thread-safe.

#include <bitset>
#include <string_view>
#include <vector>

#include "text/tokenize/byte_trie.h"
#include "text/tokenizer_spec.h"

namespace pagoda::text {

class SpecialTokens {
  public:
    // Texts that are not valid UTF-8 are left out: no valid text spells them.
    // REQUIRES: the token texts of these types are at most ByteTrie::kMaxKeyBytes together.
    explicit SpecialTokens(const TokenizerSpec& spec);

    // The stretch that becomes the token: what spells it, and the white space that it strips.
    struct Match {
        std::size_t begin = 0;  // text.size() when there is none
        std::size_t bytes = 0;
        base::TokenId id = kNoToken;
    };
    // The next one at or after `from`. Without with_control only user-defined tokens count.
    [[nodiscard]] Match next(std::string_view text, std::size_t from, bool with_control) const;

    [[nodiscard]] static std::size_t key_bytes(const TokenizerSpec& spec);

  private:
    struct Set {
        explicit Set(std::size_t key_bytes) : trie(key_bytes) {}
        void insert(std::string_view text, base::TokenId id);
        ByteTrie trie;
        std::bitset<256> first_bytes;
    };
    [[nodiscard]] Match with_stripped(std::string_view text, std::size_t from, Match match) const;

    Set all_;
    Set user_defined_;
    std::vector<base::TokenId> lstrip_, rstrip_;  // sorted
};

}  // namespace pagoda::text
