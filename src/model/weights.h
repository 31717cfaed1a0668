#pragma once
// The bound weights of a decoder: which tensor of the checkpoint plays which part, checked against
// the spec's shapes. A tensor that plays no part refuses the load, so that nothing is ignored.
// `embedding` borrows from the checkpoint's storage, which whoever keeps the weights keeps too.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "kernels/ops/weight.h"
#include "model/decoder_spec.h"
#include "model/model.h"

namespace pagoda::model {

using Vector = std::vector<float>;  // a norm's weight, a bias; empty when the model has none

struct LinearWeight {
    kernels::Weight weight;  // [out, in]
    Vector bias;
};

struct LayerWeights {
    Vector attention_norm, post_attention_norm;  // [hidden]
    Vector q_norm, k_norm;                       // [head_dim]
    LinearWeight q, k, v, output;
    Vector ffn_norm, post_ffn_norm;  // [hidden]
    LinearWeight gate, up, down;
};

struct DecoderWeights {
    std::optional<kernels::WeightArena> arena;  // that the layers' weights lie in
    tensor::TensorView embedding;  // [vocab, hidden], as stored; borrowed from the file's mapping
    std::vector<LayerWeights> layers;
    Vector output_norm;
    LinearWeight head;     // [vocab, hidden]; packed from the embedding when tied
    Vector rope_divisors;  // [rotary_dim / 2] or empty
};

[[nodiscard]] base::Result<DecoderWeights> load_weights(const formats::Checkpoint& checkpoint,
                                                        const DecoderSpec& spec,
                                                        const kernels::DeviceContext& device,
                                                        const LoadProgress& progress,
                                                        const PackedCacheOptions& cache = {});

// Packed bytes of all weights, with the same checks and without packing.
[[nodiscard]] base::Result<std::uint64_t> measure_weights(const formats::Checkpoint& checkpoint,
                                                          const DecoderSpec& spec,
                                                          const kernels::Kernels& kernels);

}  // namespace pagoda::model
