// repetition_penalty (Keskar et al., CTRL, section 4.1): tokens of prompt and output lose
// likelihood by division of a positive and multiplication of a negative logit. presence_penalty and
// frequency_penalty are subtracted once, and once per occurrence, for output tokens only.

#include <algorithm>
#include <cmath>
#include <limits>

#include "decode/processors/processors.h"

namespace pagoda::decode {

namespace {

bool is_wanted(const EditContext& context) {
    const SamplingParams& params = context.params;
    return params.repetition_penalty != 1.0 || params.presence_penalty != 0.0 ||
           params.frequency_penalty != 0.0;
}

void apply(const EditContext& context, std::span<float> logits) {
    const SamplingParams& params = context.params;
    for (const TokenHistory::Entry& seen : context.history.entries()) {
        float& logit = logits[static_cast<std::size_t>(seen.token)];
        double value = static_cast<double>(logit);
        value = value > 0 ? value / params.repetition_penalty : value * params.repetition_penalty;
        if (seen.output_count > 0) {
            value -= params.presence_penalty;
            value -= params.frequency_penalty * static_cast<double>(seen.output_count);
        }
        constexpr double kLargest = std::numeric_limits<float>::max();
        // What was impossible stays so; what is possible stays a number.
        if (std::isfinite(logit))
            logit = static_cast<float>(std::clamp(value, -kLargest, kLargest));
    }
}

}  // namespace

LogitEdit penalties_edit() {
    return {"penalties", is_wanted, apply};
}

}  // namespace pagoda::decode
