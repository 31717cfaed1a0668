// llama, and what shares its file layout: Mistral, SmolLM and others. Rotary pairs are interleaved,
// since GGUF files of this architecture carry permuted q and k.

#include "model/arch/arch.h"

namespace pagoda::model::arch {

DecoderSpec read_llama(Hyperparameters& keys) {
    DecoderSpec spec = read_sizes(keys, kernels::RopeStyle::kInterleaved);
    spec.qkv_bias = Presence::kOptional;
    spec.output_bias = Presence::kOptional;
    spec.mlp_bias = Presence::kOptional;
    const std::int64_t window = read_window(keys, spec.context_length);
    for (LayerSpec& layer : spec.layers) layer.window = window;
    return spec;
}

}  // namespace pagoda::model::arch
