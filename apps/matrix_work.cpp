#include "matrix_work.h"

#include <algorithm>

namespace pagoda::apps {
namespace {

double peak_of(tensor::DType dtype, const kernels::DeviceContext& device,
               const kernels::Roof& roof) {
    constexpr double kGiga = 1e9;
    switch (arithmetic_of(dtype, device)) {
        case Arithmetic::kInt8:
            return roof.int8_gops * kGiga;
        case Arithmetic::kBf16:
            return std::max(roof.bf16_gflops, roof.f32_gflops) * kGiga;
        case Arithmetic::kF32:
            return roof.f32_gflops * kGiga;
    }
    return 0;
}

}  // namespace

Arithmetic arithmetic_of(tensor::DType dtype, const kernels::DeviceContext& device) {
    if (device.activation_mode == kernels::ActivationMode::kF32) return Arithmetic::kF32;
    if (tensor::info(dtype).is_quantized) return Arithmetic::kInt8;
    return dtype == tensor::DType::kBF16 ? Arithmetic::kBf16 : Arithmetic::kF32;
}

MatrixWork matrix_work(const formats::Checkpoint& checkpoint, const kernels::DeviceContext& device,
                       const kernels::Roof& roof) {
    const formats::CheckpointTensor* head = checkpoint.find_tensor("output.weight");
    if (head == nullptr) head = checkpoint.find_tensor("token_embd.weight");
    MatrixWork work;
    for (const formats::CheckpointTensor& tensor : checkpoint.tensors) {
        const bool is_layer = tensor.name.starts_with("blk.") && tensor.view.shape.size() == 2;
        if (!is_layer && &tensor != head) continue;
        const std::int64_t out = tensor.view.shape[0];
        const std::int64_t in = tensor.view.shape[1];
        const double seconds = 2.0 * static_cast<double>(out) * static_cast<double>(in) /
                               peak_of(tensor.view.dtype, device, roof);
        (is_layer ? work.layer_seconds : work.head_seconds) += seconds;
        work.weight_bytes +=
            static_cast<double>(device.kernels->packed_bytes(tensor.view.dtype, out, in));
    }
    return work;
}

}  // namespace pagoda::apps
