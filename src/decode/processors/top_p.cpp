// Nucleus sampling (Holtzman et al., 2020): the most likely tokens, as few as reach the mass top_p.

#include "decode/processors/processors.h"
#include "decode/vocab_scan.h"

namespace pagoda::decode {

namespace {

bool is_wanted(const SamplingParams& params) {
    return params.top_p < 1.0;
}

void apply(const SamplingParams& params, Candidates& candidates) {
    const double total = sum_row(candidates.values());
    const double mass = params.top_p * total;
    // Tokens below this bound weigh less than 1 - top_p all together, so that none of them is in
    // the nucleus; on peaked distributions that leaves a handful, on flat ones it is not worth a
    // pass.
    const double bound =
        0.999 * (1.0 - params.top_p) * total / static_cast<double>(candidates.size());
    if (count_at_least(candidates.values(), static_cast<float>(bound)) < candidates.size() / 2) {
        candidates.keep_at_least(static_cast<float>(bound));
    }
    const std::vector<std::uint32_t> ranks = ranks_descending(candidates.values());
    candidates.keep_up_to(ranks, cut_by_mass(ranks, candidates.values(), mass));
}

}  // namespace

CandidateFilter top_p_filter() {
    return {"top_p", is_wanted, apply};
}

}  // namespace pagoda::decode
