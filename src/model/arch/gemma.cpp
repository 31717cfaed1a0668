// Gemma 2 and 3: embeddings scaled by sqrt(hidden), norms before and after attention and MLP,
// windows on most layers; Gemma 2 has soft caps, Gemma 3 norms on q and k and a second rope base
// for its windowed layers; files of Ollama name the bases rope.global and rope.local. Norm weights
// arrive with the 1 already added.

#include <cmath>

#include <fmt/core.h>

#include "model/arch/arch.h"

namespace pagoda::model::arch {
namespace {

DecoderSpec read_gemma(Hyperparameters& keys, std::string_view other_base = {}) {
    constexpr FloatRange kSoftCap = {0.0, 1e6};  // 0: none
    DecoderSpec spec = read_sizes(keys, kernels::RopeStyle::kHalves, other_base);
    spec.activation = kernels::GateKind::kGeluTanh;
    spec.post_norms = Presence::kAlways;
    spec.embedding_scale = std::sqrt(static_cast<float>(spec.hidden));
    spec.attention_soft_cap =
        static_cast<float>(keys.float_or("attn_logit_softcapping", 0.0, kSoftCap));
    spec.final_soft_cap =
        static_cast<float>(keys.float_or("final_logit_softcapping", 0.0, kSoftCap));
    return spec;
}

// The largest model of each generation alone scales scores by the embedding's share of a head.
void set_scale_of_27b(std::int64_t num_layers, DecoderSpec& spec) {
    if (spec.num_layers() == num_layers)
        spec.attention_scale =
            1.0F / std::sqrt(static_cast<float>(spec.hidden) / static_cast<float>(spec.heads));
}

// Which layers have the window: as the file lists them, or all but every `period`-th.
std::vector<bool> windowed_layers(Hyperparameters& keys, std::int64_t default_period,
                                  std::int64_t num_layers) {
    constexpr std::string_view kPattern = "attention.sliding_window_pattern";
    const std::vector<std::int64_t> pattern = keys.ints(kPattern);
    const auto entries = static_cast<std::int64_t>(pattern.size());
    const bool is_per_layer = entries == num_layers && num_layers > 1;
    if (entries > 1 && !is_per_layer)
        keys.refuse(kPattern, fmt::format("has {} entries for {} layers", entries, num_layers));
    std::int64_t period = entries == 1 ? pattern.front() : default_period;
    if (period < 1) {
        keys.refuse(kPattern, fmt::format("is {}, must be at least 1", period));
        period = default_period;
    }
    std::vector<bool> windowed;
    for (std::int64_t number = 0; number < num_layers; ++number)
        windowed.push_back(is_per_layer ? pattern[static_cast<std::size_t>(number)] != 0
                                        : (number + 1) % period != 0);
    return windowed;
}

// Windows of the layers; tells which they are, since a window as long as the context is none.
std::vector<bool> set_windows(Hyperparameters& keys, std::int64_t default_period,
                              DecoderSpec& spec) {
    constexpr std::string_view kWindow = "attention.sliding_window";
    const std::vector<bool> windowed = windowed_layers(keys, default_period, spec.num_layers());
    const std::vector<std::int64_t> given = keys.ints(kWindow);
    if (given.empty() || given.front() < 1) keys.refuse(kWindow, "is missing or below 1");
    const std::int64_t window = read_window(keys, spec.context_length);
    for (std::size_t number = 0; number < windowed.size(); ++number)
        spec.layers[number].window = windowed[number] ? window : 0;
    return windowed;
}

}  // namespace

DecoderSpec read_gemma2(Hyperparameters& keys) {
    DecoderSpec spec = read_gemma(keys);
    static_cast<void>(set_windows(keys, 2, spec));
    set_scale_of_27b(46, spec);
    return spec;
}

DecoderSpec read_gemma3(Hyperparameters& keys) {
    DecoderSpec spec = read_gemma(keys, "rope.global.freq_base");
    spec.qk_norm = Presence::kAlways;
    const std::vector<bool> windowed = set_windows(keys, 6, spec);
    RopeSpec local = spec.ropes.front();
    local.freq_base =
        keys.float_of_either("rope.freq_base_swa", "rope.local.freq_base", 10000.0, kFreqBase);
    local.scaling = {};  // scaling is for the layers that see everything
    local.has_divisors = false;
    spec.ropes.push_back(local);
    for (std::size_t number = 0; number < windowed.size(); ++number)
        spec.layers[number].rope = windowed[number] ? 1 : 0;
    set_scale_of_27b(62, spec);
    return spec;
}

}  // namespace pagoda::model::arch
