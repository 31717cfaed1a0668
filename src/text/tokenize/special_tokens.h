#pragma once
// SpecialTokens: finds the control and user-defined tokens that a text spells, leftmost and
// longest first, and decides which tokens end generation. Immutable and thread-safe.

#include <bitset>
#include <string_view>
#include <vector>

#include "text/tokenize/byte_trie.h"
#include "text/tokenizer_spec.h"

namespace pagoda::text {

class SpecialTokens {
  public:
    // REQUIRES: the token texts of these types are at most ByteTrie::kMaxKeyBytes together.
    explicit SpecialTokens(const TokenizerSpec& spec);

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
    Set all_;
    Set user_defined_;
};

// The sorted ids that end generation (see README.md for the rule). Tokens that are found by their
// name become control tokens in the spec, so that they are never printed.
[[nodiscard]] std::vector<base::TokenId> end_of_generation(TokenizerSpec& spec);

}  // namespace pagoda::text
