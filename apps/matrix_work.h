#pragma once
// What one token costs a model's matrix products, from the shapes in its file: the numerator of a
// share of the roof. Pure.

#include "formats/checkpoint.h"
#include "kernels/ops/device_context.h"
#include "kernels/roof.h"
#include "tensor/dtype.h"

namespace pagoda::apps {

// Whose peak a weight is held against: int8 for block-quantised ones, the better of bf16 and f32
// for BF16, f32 for the others and wherever activations are not rounded.
enum class Arithmetic { kInt8, kBf16, kF32 };
[[nodiscard]] Arithmetic arithmetic_of(tensor::DType dtype, const kernels::DeviceContext& device);

struct MatrixWork {
    // Seconds that one token's products take at the roof's arithmetic peak.
    double layer_seconds = 0;  // of the layers
    double head_seconds = 0;   // of the vocabulary's logits
    // Packed weights that one decode step reads.
    double weight_bytes = 0;
};
[[nodiscard]] MatrixWork matrix_work(const formats::Checkpoint& checkpoint,
                                     const kernels::DeviceContext& device,
                                     const kernels::Roof& roof);

}  // namespace pagoda::apps
