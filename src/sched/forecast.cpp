#include "sched/forecast.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kv/index/block_pool.h"

namespace pagoda::sched {

namespace {

// Before anything is known: a few outputs of this length, which fade as real ones come in.
constexpr std::int64_t kPriorTokens = 256;
constexpr double kPriorCount = 4;
constexpr double kPriorFade = 0.5;  // for each real output
// Old observations lose half their weight when so many have come together.
constexpr double kMaxCount = 256;

// Four buckets an octave: 0 1 2 3, 4 5 6 7, 8-9 10-11 12-13 14-15, 16-19 ...
std::size_t bucket_of(std::int64_t tokens) {
    const auto length = static_cast<std::uint64_t>(tokens);
    if (length < 4) return static_cast<std::size_t>(length);
    const auto octave = static_cast<std::size_t>(std::bit_width(length)) - 3;
    return 4 * (octave + 1) + static_cast<std::size_t>((length >> octave) & 3U);
}

bool is_longer(const FutureDemand::Item& a, const FutureDemand::Item& b) {
    return a.remaining > b.remaining;
}

}  // namespace

OutputForecast::OutputForecast() : prior_count_(kPriorCount) {
    update_above();
}

void OutputForecast::record(std::int64_t output_tokens) {
    if (above_[0].count >= kMaxCount) {
        for (Bucket& bucket : buckets_) bucket = {bucket.count / 2, bucket.tokens / 2};
    }
    prior_count_ = std::max(prior_count_ - kPriorFade, 0.0);
    buckets_[bucket_of(output_tokens)].add(1, output_tokens);
    update_above();
}

OutputForecast::Bucket OutputForecast::bucket(std::size_t index) const {
    Bucket bucket = buckets_[index];
    if (index == bucket_of(kPriorTokens)) bucket.add(prior_count_, kPriorTokens);
    return bucket;
}

void OutputForecast::update_above() {
    above_[kNumBuckets] = {};
    for (std::size_t i = kNumBuckets; i-- > 0;) {
        const Bucket own = bucket(i);
        above_[i] = {above_[i + 1].count + own.count, above_[i + 1].tokens + own.tokens};
    }
}

std::int64_t OutputForecast::remaining(std::int64_t so_far) const {
    const auto length = static_cast<double>(so_far);
    const std::size_t own = bucket_of(so_far);
    Bucket longer = above_[own + 1];
    // The bucket that holds `so_far` counts as a whole, at its mean, or not at all.
    const Bucket same = bucket(own);
    if (same.tokens > length * same.count) {
        longer = {longer.count + same.count, longer.tokens + same.tokens};
    }
    if (longer.count <= 0) return std::max<std::int64_t>(so_far, 1);
    const double mean = longer.tokens / longer.count - length;
    return std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(mean)), 1);
}

void FutureDemand::add(Item item) {
    items_.insert(std::upper_bound(items_.begin(), items_.end(), item, is_longer), item);
}

std::int64_t FutureDemand::peak_with(Item candidate) const {
    // The sum is largest just before some sequence ends: when number i of those still there,
    // longest first, has `remaining` tokens more, the i of them have grown by as much.
    std::int64_t peak = 0;
    std::int64_t count = 0;
    std::int64_t tokens = 0;
    const auto visit = [&](const Item& item) {
        tokens += item.tokens - item.shared;
        ++count;
        // Each sequence's last block is half full on average.
        const std::int64_t rounding = (count - 1) * (kv::kBlockTokens / 2);
        peak = std::max(peak, kv::blocks_for(tokens + count * item.remaining + rounding));
    };
    bool is_visited = false;
    for (const Item& item : items_) {
        if (!is_visited && is_longer(candidate, item)) {
            visit(candidate);
            is_visited = true;
        }
        visit(item);
    }
    if (!is_visited) visit(candidate);
    return peak;
}

}  // namespace pagoda::sched
