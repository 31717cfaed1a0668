#include "model/decoder_spec.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace pagoda::model {
namespace {

// The rotary pair that turns `rotations` times within the original context (YaRN, eq. 17 and 18).
double pair_of_rotations(const RopeSpec& rope, double rotations) {
    return static_cast<double>(rope.rotary_dim) *
           std::log(rope.scaling.original_context / (rotations * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(rope.freq_base));
}

// Between original (0) and interpolated (1) frequency of each pair.
double yarn_interpolation(const RopeSpec& rope, std::int64_t pair) {
    const double last = static_cast<double>(rope.rotary_dim - 1);
    const double low = std::max(0.0, std::floor(pair_of_rotations(rope, rope.scaling.beta_fast)));
    const double high = std::min(last, std::ceil(pair_of_rotations(rope, rope.scaling.beta_slow)));
    const double width = std::max(0.001, high - low);
    return std::clamp((static_cast<double>(pair) - low) / width, 0.0, 1.0);
}

}  // namespace

std::vector<KvGroup> kv_groups(const DecoderSpec& spec) {
    std::vector<KvGroup> groups;
    for (std::size_t layer = 0; layer < spec.layers.size(); ++layer) {
        const std::int64_t window = spec.layers[layer].window;
        auto group = std::find_if(groups.begin(), groups.end(),
                                  [window](const KvGroup& g) { return g.window == window; });
        if (group == groups.end()) group = groups.insert(groups.end(), KvGroup{window, {}});
        group->layers.push_back(static_cast<std::int64_t>(layer));
    }
    return groups;
}

RopeTable::RopeTable(const RopeSpec& spec, const std::vector<float>& divisors)
    : magnitude_(spec.scaling.attention_factor) {
    const std::int64_t pairs = spec.rotary_dim / 2;
    frequencies_.reserve(static_cast<std::size_t>(pairs));
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
        double frequency = std::pow(spec.freq_base, -2.0 * static_cast<double>(pair) /
                                                        static_cast<double>(spec.rotary_dim));
        if (spec.has_divisors && !divisors.empty())
            frequency /= static_cast<double>(divisors[static_cast<std::size_t>(pair)]);
        const double interpolated = frequency / spec.scaling.factor;
        if (spec.scaling.kind == RopeScalingKind::kLinear) {
            frequency = interpolated;
        } else if (spec.scaling.kind == RopeScalingKind::kYarn) {
            const double share = yarn_interpolation(spec, pair);
            frequency = interpolated * share + frequency * (1.0 - share);
        }
        frequencies_.push_back(frequency);
    }
}

void RopeTable::write(std::int64_t position, float* cos, float* sin) const {
    for (std::size_t pair = 0; pair < frequencies_.size(); ++pair) {
        const double angle = static_cast<double>(position) * frequencies_[pair];
        cos[pair] = static_cast<float>(std::cos(angle) * magnitude_);
        sin[pair] = static_cast<float>(std::sin(angle) * magnitude_);
    }
}

}  // namespace pagoda::model
