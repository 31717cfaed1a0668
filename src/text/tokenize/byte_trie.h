#pragma once
// ByteTrie: a set of strings with an id each, walked byte by byte; finds the longest or every key
// that starts at a position. One flat hash table of edges. Filled once, then read-only and
// thread-safe.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/tokenize/token_map.h"

namespace pagoda::text {

class ByteTrie {
  public:
    using Node = std::uint32_t;
    static constexpr Node kRoot = 0;
    static constexpr Node kNone = 0xFFFFFFFFU;
    // Bytes of all keys together.
    static constexpr std::size_t kMaxKeyBytes = std::size_t{1} << 24;

    // REQUIRES: total_key_bytes, an upper bound for all keys together, is at most kMaxKeyBytes.
    explicit ByteTrie(std::size_t total_key_bytes);
    // The first id of a key stays. Empty keys are left out.
    void insert(std::string_view key, base::TokenId id);

    [[nodiscard]] Node child(Node node, unsigned char byte) const {
        if (node == kRoot) return root_[byte];
        return slots_[probe(node << 8 | byte)].child;
    }
    // kNoToken when no key ends here.
    [[nodiscard]] base::TokenId id(Node node) const { return ids_[node]; }
    [[nodiscard]] bool empty() const { return ids_.size() == 1; }

    struct Match {
        base::TokenId id = kNoToken;
        std::size_t bytes = 0;
    };
    // The longest key that text begins with.
    [[nodiscard]] Match longest_prefix(std::string_view text) const;

  private:
    struct Slot {
        std::uint32_t key = 0;  // parent << 8 | byte
        Node child = kNone;
    };
    [[nodiscard]] std::size_t probe(std::uint32_t key) const {
        std::size_t at = mix_bits(key) & mask_;
        while (slots_[at].child != kNone && slots_[at].key != key) at = (at + 1) & mask_;
        return at;
    }

    std::array<Node, 256> root_{};
    std::vector<Slot> slots_;
    std::size_t mask_;
    std::vector<base::TokenId> ids_;  // of each node
};

}  // namespace pagoda::text
