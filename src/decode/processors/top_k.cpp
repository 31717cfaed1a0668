#include <algorithm>
#include <functional>

#include "decode/processors/processors.h"
#include "decode/vocab_scan.h"

namespace pagoda::decode {

namespace {

bool is_wanted(const SamplingParams& params) {
    return params.top_k > 0;
}

// The k-th largest of the pieces' peaks is at most the k-th largest value: a bound that leaves
// little more than k candidates, found without looking at each value's rank.
void drop_below_piece_peaks(Candidates& candidates, std::size_t k) {
    std::vector<float> peaks = piece_peaks(candidates.values());
    if (peaks.size() < k) return;
    const auto bound = peaks.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(peaks.begin(), bound, peaks.end(), std::greater<>());
    candidates.keep_at_least(*bound);
}

void apply(const SamplingParams& params, Candidates& candidates) {
    const auto k = static_cast<std::size_t>(params.top_k);
    if (k >= candidates.size()) return;
    drop_below_piece_peaks(candidates, k);
    const std::vector<std::uint32_t> ranks = ranks_descending(candidates.values());
    candidates.keep_up_to(ranks, cut_by_count(ranks, k));
}

}  // namespace

CandidateFilter top_k_filter() {
    return {"top_k", is_wanted, apply};
}

}  // namespace pagoda::decode
