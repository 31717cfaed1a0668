#pragma once
// Candidates: the tokens that may still be chosen, with one value each: scaled logits at first,
// then weights (unnormalised probabilities). Always in ascending order of token id, so that a tie
// between values is broken by position. Filters shrink it in place; nothing is sorted as a whole.
// Lives on the stack of one sample() call and borrows the caller's scratch.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace pagoda::decode {

class Candidates {
  public:
    // values: one per token of the vocabulary; overwritten. Outlives this object.
    explicit Candidates(std::span<float> values) : values_(values) {}

    [[nodiscard]] std::size_t size() const { return values_.size(); }
    [[nodiscard]] std::span<float> values() { return values_; }
    [[nodiscard]] std::span<const float> values() const { return values_; }
    [[nodiscard]] base::TokenId token(std::size_t position) const {
        return tokens_.empty() ? static_cast<base::TokenId>(position) : tokens_[position];
    }

    // Keeps the positions whose rank is at most the cut's: see RankCut. `ranks` has size() entries.
    struct RankCut {
        std::uint32_t rank = 0;
        std::size_t last_position = 0;  // among those of equal rank, the last that is kept
    };
    void keep_up_to(std::span<const std::uint32_t> ranks, const RankCut& cut);
    // Keeps values >= bound.
    void keep_at_least(float bound);

  private:
    template <class Keep>
    void keep_if(std::size_t num_kept, Keep keep);

    std::span<float> values_;
    std::vector<base::TokenId> tokens_;  // empty: every token of the vocabulary is still there
};

// A rank orders positions, lower first, ties by position. Non-negative floats keep their order as
// bit patterns; these two turn values into ranks.
[[nodiscard]] std::vector<std::uint32_t> ranks_ascending(std::span<const float> nonnegative);
// Any floats but NaN.
[[nodiscard]] std::vector<std::uint32_t> ranks_descending(std::span<const float> values);

// The shortest run of best ranks, at least one, whose weights reach `mass` (all of them, when they
// never do). Linear time: a histogram finds the bucket in which the run ends, and only that one is
// sorted.
[[nodiscard]] Candidates::RankCut cut_by_mass(std::span<const std::uint32_t> ranks,
                                              std::span<const float> weights, double mass);
// The best `count` ranks. REQUIRES: 1 <= count <= ranks.size()
[[nodiscard]] Candidates::RankCut cut_by_count(std::span<const std::uint32_t> ranks,
                                               std::size_t count);

}  // namespace pagoda::decode
