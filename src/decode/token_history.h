#pragma once
// TokenHistory: which tokens a sequence has seen, as the penalties and min_tokens count them.
// Owned by one sequence's sampler; used by one thread at a time.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.h"

namespace pagoda::decode {

class TokenHistory {
  public:
    struct Entry {
        base::TokenId token = 0;
        bool in_prompt = false;
        std::int64_t output_count = 0;
    };

    void add_prompt(std::span<const base::TokenId> tokens);
    void add_output(base::TokenId token);

    // One entry for each distinct token, in the order of first sight.
    [[nodiscard]] std::span<const Entry> entries() const { return entries_; }

  private:
    Entry& entry_of(base::TokenId token);

    std::vector<Entry> entries_;
    std::unordered_map<base::TokenId, std::size_t> index_;  // into entries_
};

}  // namespace pagoda::decode
