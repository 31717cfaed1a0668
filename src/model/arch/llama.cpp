// llama, and what shares its file layout: Mistral, SmolLM and others. Rotary pairs are interleaved,
// since GGUF files of this architecture carry permuted q and k.

#include "model/arch/arch.h"

namespace pagoda::model::arch {

base::Result<DecoderSpec> read_llama(const formats::Checkpoint& checkpoint) {
    auto spec = read_sizes(checkpoint, kernels::RopeStyle::kInterleaved);
    if (!spec) return spec.error();
    spec->qkv_bias = Presence::kOptional;
    const auto window = int_or(checkpoint, "attention.sliding_window", 0);
    if (!window) return window.error();
    for (LayerSpec& layer : spec->layers) layer.window = *window;
    return spec;
}

}  // namespace pagoda::model::arch
