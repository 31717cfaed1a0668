#include "decode/candidates.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"
#include "decode/vocab_scan.h"

namespace pagoda::decode {

namespace {

constexpr std::uint32_t kBucketShift = 19;
constexpr std::size_t kNumBuckets = std::size_t{1} << (32U - kBucketShift);

bool is_kept(std::uint32_t rank, std::size_t position, const Candidates::RankCut& cut) {
    return rank < cut.rank || (rank == cut.rank && position <= cut.last_position);
}

struct RankedPosition {
    std::uint32_t rank;
    std::size_t position;
    friend auto operator<=>(const RankedPosition&, const RankedPosition&) = default;
};

std::vector<RankedPosition> bucket_members(std::span<const std::uint32_t> ranks,
                                           std::size_t bucket) {
    std::vector<RankedPosition> members;
    for (std::size_t position = 0; position < ranks.size(); ++position) {
        if (ranks[position] >> kBucketShift == bucket)
            members.push_back({ranks[position], position});
    }
    return members;
}

Candidates::RankCut last_of_all(std::span<const std::uint32_t> ranks) {
    return {*std::max_element(ranks.begin(), ranks.end()), ranks.size()};
}

}  // namespace

template <class Keep>
void Candidates::keep_if(std::size_t num_kept, Keep keep) {
    if (num_kept == values_.size()) return;
    const bool was_whole = tokens_.empty();
    if (was_whole) tokens_.resize(num_kept);
    std::size_t kept = 0;
    for (std::size_t position = 0; position < values_.size(); ++position) {
        if (!keep(position)) continue;
        tokens_[kept] = was_whole ? static_cast<base::TokenId>(position) : tokens_[position];
        values_[kept] = values_[position];
        ++kept;
    }
    CHECK(kept == num_kept && kept > 0, "a filter must keep at least one candidate");
    tokens_.resize(kept);
    values_ = values_.first(kept);
}

void Candidates::keep_up_to(std::span<const std::uint32_t> ranks, const RankCut& cut) {
    std::size_t num_kept = 0;
    for (std::size_t position = 0; position < ranks.size(); ++position) {
        num_kept += is_kept(ranks[position], position, cut) ? 1 : 0;
    }
    keep_if(num_kept,
            [&](std::size_t position) { return is_kept(ranks[position], position, cut); });
}

void Candidates::keep_at_least(float bound) {
    keep_if(count_at_least(values_, bound),
            [&](std::size_t position) { return values_[position] >= bound; });
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
    std::vector<double> bucket_mass(kNumBuckets);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        bucket_mass[ranks[i] >> kBucketShift] += static_cast<double>(weights[i]);
    }
    // With a positive mass the run ends in a bucket that has some, hence has members.
    mass = std::max(mass, std::numeric_limits<double>::min());
    double before = 0;
    std::size_t bucket = 0;
    while (bucket < kNumBuckets && before + bucket_mass[bucket] < mass) {
        before += bucket_mass[bucket++];
    }
    if (bucket == kNumBuckets) return last_of_all(ranks);
    std::vector<RankedPosition> members = bucket_members(ranks, bucket);
    std::sort(members.begin(), members.end());
    for (const RankedPosition& member : members) {
        before += static_cast<double>(weights[member.position]);
        if (before >= mass) return {member.rank, member.position};
    }
    return {members.back().rank, members.back().position};
}

Candidates::RankCut cut_by_count(std::span<const std::uint32_t> ranks, std::size_t count) {
    CHECK(count >= 1 && count <= ranks.size(), "count must be within the candidates");
    std::vector<std::uint32_t> bucket_size(kNumBuckets);
    for (const std::uint32_t rank : ranks) ++bucket_size[rank >> kBucketShift];
    std::size_t before = 0;
    std::size_t bucket = 0;
    while (before + bucket_size[bucket] < count) before += bucket_size[bucket++];
    std::vector<RankedPosition> members = bucket_members(ranks, bucket);
    const auto last = members.begin() + static_cast<std::ptrdiff_t>(count - before - 1);
    std::nth_element(members.begin(), last, members.end());
    return {last->rank, last->position};
}

}  // namespace pagoda::decode
