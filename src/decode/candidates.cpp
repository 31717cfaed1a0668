#include "decode/candidates.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"
#include "decode/vocab_scan.h"

namespace pagoda::decode {

namespace {

// A rank is looked at in three digits, the highest first.
struct Digit {
    std::uint32_t shift;
    std::uint32_t num_bits;
    [[nodiscard]] std::size_t of(std::uint32_t rank) const {
        return (rank >> shift) & ((1U << num_bits) - 1);
    }
};
constexpr Digit kDigits[] = {{19, 13}, {8, 11}, {0, 8}};

// The shortest run of best ranks whose weights sum to `target`. Each digit's histogram tells in
// which bucket the run ends, and only its members are looked at again: linear, and never a sort.
template <class WeightOf, class Sum>
Candidates::RankCut cut_by(std::span<const std::uint32_t> ranks, WeightOf weight_of, Sum target) {
    std::vector<std::size_t> members;
    Sum before = 0;
    std::vector<Sum> buckets;
    for (const Digit& digit : kDigits) {
        const bool is_first = &digit == kDigits;
        const std::size_t num_members = is_first ? ranks.size() : members.size();
        const auto member = [&](std::size_t i) { return is_first ? i : members[i]; };
        buckets.assign(std::size_t{1} << digit.num_bits, 0);
        for (std::size_t i = 0; i < num_members; ++i) {
            buckets[digit.of(ranks[member(i)])] += weight_of(member(i));
        }
        std::size_t bucket = 0;
        std::size_t last = 0;
        Sum before_last = before;
        while (bucket < buckets.size() && before + buckets[bucket] < target) {
            if (buckets[bucket] > 0) {
                last = bucket;
                before_last = before;
            }
            before += buckets[bucket++];
        }
        // The target is out of reach, of this digit's sums at least, which round differently from
        // the last one's: the run ends with the last that has weight.
        if (bucket == buckets.size()) {
            bucket = last;
            before = before_last;
        }
        std::vector<std::size_t> inside;
        for (std::size_t i = 0; i < num_members; ++i) {
            if (digit.of(ranks[member(i)]) == bucket) inside.push_back(member(i));
        }
        members = std::move(inside);
    }
    for (const std::size_t position : members) {
        before += weight_of(position);
        if (before >= target) return {ranks[position], position};
    }
    return {ranks[members.back()], members.back()};
}

}  // namespace

template <class Keep>
void Candidates::keep_if(std::size_t num_kept, Keep keep) {
    if (num_kept == values_.size()) return;
    CHECK(num_kept > 0, "a filter must keep at least one candidate");
    const bool was_whole = tokens_.empty();
    // Each entry is copied to the place of the next survivor, and stays if it is one: no branch to
    // mispredict, and one place more than there are survivors.
    if (was_whole) tokens_.resize(num_kept + 1);
    std::size_t kept = 0;
    for (std::size_t position = 0; position < values_.size(); ++position) {
        tokens_[kept] = was_whole ? static_cast<base::TokenId>(position) : tokens_[position];
        values_[kept] = values_[position];
        kept += keep(position) ? 1 : 0;
    }
    CHECK(kept == num_kept, "a filter miscounted");
    tokens_.resize(kept);
    values_ = values_.first(kept);
}

void Candidates::keep_up_to(std::span<const std::uint32_t> ranks, const RankCut& cut) {
    const std::size_t split = std::min(cut.last_position + 1, ranks.size());
    std::size_t num_kept = 0;
    for (std::size_t i = 0; i < split; ++i) num_kept += ranks[i] <= cut.rank ? 1 : 0;
    for (std::size_t i = split; i < ranks.size(); ++i) num_kept += ranks[i] < cut.rank ? 1 : 0;
    keep_if(num_kept, [ranks, cut, split](std::size_t i) {
        return static_cast<int>(ranks[i] < cut.rank) |
               (static_cast<int>(ranks[i] == cut.rank) & static_cast<int>(i < split));
    });
}

void Candidates::keep_at_least(float bound) {
    // `values_` is overwritten on the way, but only in front of the position that is looked at.
    keep_if(count_at_least(values_, bound),
            [values = values_, bound](std::size_t i) { return values[i] >= bound; });
}

std::vector<std::uint32_t> ranks_ascending(std::span<const float> nonnegative) {
    std::vector<std::uint32_t> ranks(nonnegative.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        ranks[i] = std::bit_cast<std::uint32_t>(nonnegative[i]);
    }
    return ranks;
}

std::vector<std::uint32_t> ranks_descending(std::span<const float> values) {
    constexpr std::uint32_t kSign = 0x80000000U;
    std::vector<std::uint32_t> ranks(values.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        // Adding zero makes -0 and +0 equal. Negative floats order backwards as bits, which is the
        // direction wanted here; positive ones are turned round.
        const auto bits = std::bit_cast<std::uint32_t>(values[i] + 0.0F);
        ranks[i] = (bits & kSign) != 0 ? bits : ~(bits | kSign);
    }
    return ranks;
}

Candidates::RankCut cut_by_mass(std::span<const std::uint32_t> ranks,
                                std::span<const float> weights, double mass) {
    // With a positive mass the run ends at a candidate that has weight.
    mass = std::max(mass, std::numeric_limits<double>::min());
    return cut_by(
        ranks, [weights](std::size_t i) { return static_cast<double>(weights[i]); }, mass);
}

Candidates::RankCut cut_by_count(std::span<const std::uint32_t> ranks, std::size_t count) {
    CHECK(count >= 1 && count <= ranks.size(), "count must be within the candidates");
    return cut_by(
        ranks, [](std::size_t) { return std::uint32_t{1}; }, static_cast<std::uint32_t>(count));
}

}  // namespace pagoda::decode
