// min_p (Nguyen et al., 2024): tokens at least min_p times as likely as the most likely one.

#include "decode/processors/processors.h"
#include "decode/vocab_scan.h"

namespace pagoda::decode {

namespace {

bool is_wanted(const SamplingParams& params) {
    return params.min_p > 0.0;
}

void apply(const SamplingParams& params, Candidates& candidates) {
    const float peak = find_peak(candidates.values()).value;
    candidates.keep_at_least(static_cast<float>(params.min_p * static_cast<double>(peak)));
}

}  // namespace

CandidateFilter min_p_filter() {
    return {"min_p", is_wanted, apply};
}

}  // namespace pagoda::decode
