// Locally typical sampling (Meister et al., 2023): the tokens whose information content lies
// nearest to the entropy of the distribution, as many as it takes to reach the mass typical_p.

#include <cmath>

#include "decode/processors/processors.h"
#include "decode/vocab_scan.h"

namespace pagoda::decode {

namespace {

bool is_wanted(const SamplingParams& params) {
    return params.typical_p < 1.0;
}

// -log p of each candidate; infinite for weight 0.
std::vector<float> information_of(std::span<const float> weights, double total) {
    const auto log_total = static_cast<float>(log_of_nonnegative(total));
    std::vector<float> information(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
        information[i] = log_total - log_of_nonnegative(weights[i]);
    }
    return information;
}

double entropy_of(std::span<const float> weights, std::span<const float> information,
                  double total) {
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (weights[i] > 0) {
            sum += static_cast<double>(weights[i]) * static_cast<double>(information[i]);
        }
    }
    return sum / total;
}

void apply(const SamplingParams& params, Candidates& candidates) {
    const std::span<const float> weights = candidates.values();
    const double total = sum_row(weights);
    std::vector<float> distance = information_of(weights, total);
    const auto entropy = static_cast<float>(entropy_of(weights, distance, total));
    for (float& value : distance) value = std::abs(value - entropy);
    const std::vector<std::uint32_t> ranks = ranks_ascending(distance);
    candidates.keep_up_to(ranks, cut_by_mass(ranks, weights, params.typical_p * total));
}

}  // namespace

CandidateFilter typical_p_filter() {
    return {"typical_p", is_wanted, apply};
}

}  // namespace pagoda::decode
