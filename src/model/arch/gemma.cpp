// Gemma 2 and 3: embeddings scaled by sqrt(hidden), norms before and after attention and MLP,
// windows on most layers; Gemma 2 has soft caps, Gemma 3 norms on q and k and a second rope base
// for its windowed layers. Norm weights arrive with the 1 already added.

#include <cmath>

#include <fmt/core.h>

#include "model/arch/arch.h"

namespace pagoda::model::arch {
namespace {

base::Result<DecoderSpec> read_gemma(const formats::Checkpoint& checkpoint) {
    auto spec = read_sizes(checkpoint, kernels::RopeStyle::kHalves);
    if (!spec) return spec.error();
    spec->activation = kernels::GateKind::kGeluTanh;
    spec->post_norms = Presence::kAlways;
    spec->embedding_scale = std::sqrt(static_cast<float>(spec->hidden));
    const auto attention_cap = float_or(checkpoint, "attn_logit_softcapping", 0.0);
    const auto final_cap = float_or(checkpoint, "final_logit_softcapping", 0.0);
    if (!attention_cap) return attention_cap.error();
    if (!final_cap) return final_cap.error();
    if (!(*attention_cap >= 0) || !(*final_cap >= 0))
        return base::Error{base::ErrorCode::kDataLoss,
                           fmt::format("{}: soft caps must not be negative, got {} and {}",
                                       checkpoint.path, *attention_cap, *final_cap),
                           "attn_logit_softcapping"};
    spec->attention_soft_cap = static_cast<float>(*attention_cap);
    spec->final_soft_cap = static_cast<float>(*final_cap);
    return spec;
}

// Every `period`-th layer sees everything, the others their window.
base::Status set_windows(const formats::Checkpoint& checkpoint, std::int64_t default_period,
                         DecoderSpec& spec) {
    const auto window = checkpoint.arch_int("attention.sliding_window");
    if (!window) return window.error();
    if (!window->has_value() || **window < 1)
        return base::Error{base::ErrorCode::kDataLoss,
                           fmt::format("{}: {}.attention.sliding_window is missing or below 1",
                                       checkpoint.path, checkpoint.architecture),
                           "attention.sliding_window"};
    const auto pattern = checkpoint.arch_ints("attention.sliding_window_pattern");
    if (!pattern) return pattern.error();
    const bool per_layer = pattern->size() == spec.layers.size() && spec.layers.size() > 1;
    if (pattern->size() > 1 && !per_layer)
        return base::Error{
            base::ErrorCode::kDataLoss,
            fmt::format("{}: {}.attention.sliding_window_pattern has {} entries for {} layers",
                        checkpoint.path, checkpoint.architecture, pattern->size(),
                        spec.layers.size()),
            "attention.sliding_window_pattern"};
    const std::int64_t period = pattern->size() == 1 ? pattern->front() : default_period;
    if (period < 1)
        return base::Error{base::ErrorCode::kDataLoss,
                           fmt::format("{}: {}.attention.sliding_window_pattern is {}, must be at "
                                       "least 1",
                                       checkpoint.path, checkpoint.architecture, period),
                           "attention.sliding_window_pattern"};
    std::int64_t number = 0;
    for (LayerSpec& layer : spec.layers) {
        const bool windowed = per_layer ? (*pattern)[static_cast<std::size_t>(number)] != 0
                                        : (number + 1) % period != 0;
        layer.window = windowed ? **window : 0;
        ++number;
    }
    return {};
}

}  // namespace

base::Result<DecoderSpec> read_gemma2(const formats::Checkpoint& checkpoint) {
    auto spec = read_gemma(checkpoint);
    if (!spec) return spec;
    if (const auto set = set_windows(checkpoint, 2, *spec); !set) return set.error();
    // The 27B model alone scales by the embedding's share of a head.
    constexpr std::int64_t kLayersOf27B = 46;
    if (spec->num_layers() == kLayersOf27B)
        spec->attention_scale =
            1.0F / std::sqrt(static_cast<float>(spec->hidden) / static_cast<float>(spec->heads));
    return spec;
}

base::Result<DecoderSpec> read_gemma3(const formats::Checkpoint& checkpoint) {
    auto spec = read_gemma(checkpoint);
    if (!spec) return spec;
    spec->qk_norm = Presence::kAlways;
    if (const auto set = set_windows(checkpoint, 6, *spec); !set) return set.error();
    const auto local_base = float_or(checkpoint, "rope.freq_base_swa", 10000.0);
    if (!local_base) return local_base.error();
    RopeSpec local = spec->ropes.front();
    local.freq_base = *local_base;
    local.scaling = {};  // scaling is for the layers that see everything
    spec->ropes.push_back(local);
    for (LayerSpec& layer : spec->layers) layer.rope = layer.window != 0 ? 1 : 0;
    constexpr std::int64_t kLayersOf27B = 62;
    if (spec->num_layers() == kLayersOf27B)
        spec->attention_scale =
            1.0F / std::sqrt(static_cast<float>(spec->hidden) / static_cast<float>(spec->heads));
    return spec;
}

}  // namespace pagoda::model::arch
