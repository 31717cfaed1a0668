#pragma once
// TokenMap: text to id, open addressing over keys that the caller keeps alive. PairMap: two ids to
// the merge that joins them. Filled once, then read-only and thread-safe.

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace pagoda::text {

inline constexpr base::TokenId kNoToken = -1;

class TokenMap {
  public:
    explicit TokenMap(std::size_t max_keys);
    // False when the key is there already; the first id stays.
    bool insert(std::string_view key, base::TokenId id);
    [[nodiscard]] base::TokenId find(std::string_view key) const;
    [[nodiscard]] std::size_t max_key_bytes() const { return max_key_bytes_; }

  private:
    struct Slot {
        const char* data = nullptr;
        std::uint32_t bytes = 0;
        std::uint32_t tag = 0;  // high half of the hash
        base::TokenId id = kNoToken;
    };
    [[nodiscard]] const Slot& probe(std::string_view key, std::uint64_t hash) const;

    std::vector<Slot> slots_;
    std::size_t mask_;
    std::size_t max_key_bytes_ = 0;
};

struct PairMerge {
    std::uint32_t order = 0;  // lower joins first
    base::TokenId id = kNoToken;
};

class PairMap {
  public:
    explicit PairMap(std::size_t max_pairs);
    // The first merge of a pair stays.
    void insert(base::TokenId left, base::TokenId right, PairMerge merge);
    // id is kNoToken when the pair doesn't join.
    [[nodiscard]] PairMerge find(base::TokenId left, base::TokenId right) const;

  private:
    struct Slot {
        std::uint64_t key = ~std::uint64_t{0};
        PairMerge merge;
    };
    [[nodiscard]] std::size_t probe(std::uint64_t key) const;

    std::vector<Slot> slots_;
    std::size_t mask_;
};

// A 64-bit mix of bytes for tables that hold a model's own vocabulary.
[[nodiscard]] std::uint64_t hash_text(std::string_view text);
[[nodiscard]] std::uint64_t mix_bits(std::uint64_t value);

}  // namespace pagoda::text
