#include "kernels/ops/weight.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/check.h"

namespace pagoda::kernels {
namespace {

using tensor::DType;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

bool is_weight_type(DType dtype) {
    return tensor::info(dtype).is_quantized || dtype == DType::kF32 || dtype == DType::kF16 ||
           dtype == DType::kBF16;
}

void require_supported(const Kernels& kernels, const tensor::TensorView& source) {
    const base::Status supported = supports_weight(kernels, source);
    CHECK(supported.ok(), supported.error().message);
}

}  // namespace

base::Status supports_weight(const Kernels& /*kernels*/, const tensor::TensorView& source) {
    if (!is_weight_type(source.dtype)) {
        return base::Error{base::ErrorCode::kUnsupported,
                           fmt::format("a weight cannot have the type {}; F32, F16, BF16 and the "
                                       "block-quantised types can be used",
                                       tensor::info(source.dtype).name),
                           {}};
    }
    if (source.shape.size() != 2)
        return base::invalid(
            fmt::format("a weight needs 2 dimensions, this has {}", source.shape.size()));
    const std::int64_t out = source.shape[0];
    const std::int64_t in = source.shape[1];
    constexpr std::int64_t kMaxFeatures = std::int64_t{1} << 30;
    if (out < 1 || in < 1 || out > kMaxFeatures || in > kMaxFeatures)
        return base::invalid(
            fmt::format("a weight of {} x {} is outside 1 to {} each way", out, in, kMaxFeatures));
    const tensor::DTypeInfo& type = tensor::info(source.dtype);
    if (in % type.block_values != 0)
        return base::invalid(fmt::format("rows of {} values are not whole blocks of {} ({})", in,
                                         type.block_values, type.name));
    const std::size_t needed = static_cast<std::size_t>(out) * tensor::row_bytes(source.dtype, in);
    if (source.bytes < needed)
        return base::invalid(fmt::format("a weight of {} x {} in {} needs {} bytes, there are {}",
                                         out, in, type.name, needed, source.bytes));
    return {};
}

std::size_t packed_weight_bytes(const Kernels& kernels, const tensor::TensorView& source) {
    return kernels.packed_bytes(source.dtype, source.rows(), source.cols());
}

std::optional<WeightArena> WeightArena::try_allocate(std::size_t bytes) {
    auto memory = tensor::AlignedBuffer::try_allocate(bytes);
    if (!memory) return std::nullopt;
    return WeightArena(std::move(*memory));
}

std::size_t WeightArena::padded(std::size_t bytes) {
    constexpr std::size_t kLine = tensor::AlignedBuffer::kAlignment;
    return (bytes + kLine - 1) / kLine * kLine;
}

std::span<std::byte> WeightArena::take(std::size_t bytes) {
    CHECK(padded(bytes) <= memory_.bytes() - used_,
          fmt::format("{} bytes of weights where {} are left", bytes, memory_.bytes() - used_));
    const std::span<std::byte> taken{memory_.data() + used_, bytes};
    used_ += padded(bytes);
    return taken;
}

Weight::Weight(const DeviceContext& device, const tensor::TensorView& source, Rounding rounding) {
    require_supported(*device.kernels, source);
    tensor::AlignedBuffer memory(packed_weight_bytes(*device.kernels, source));
    *this = Weight(device, source, memory.as<std::byte>(), rounding);
    own_ = std::move(memory);
}

Weight Weight::adopt(const DeviceContext& device, const tensor::TensorView& source,
                     std::span<const std::byte> packed, Rounding rounding) {
    const Kernels& kernels = *device.kernels;
    require_supported(kernels, source);
    CHECK(packed.size() == packed_weight_bytes(kernels, source), "memory of another weight");
    Weight weight;
    weight.bytes_ = packed.size();
    weight.rounding_ = source.cols() <= kMaxTwiceRoundedInputs ? rounding : Rounding::kOnce;
    weight.view_ = {.dtype = source.dtype,
                    .layout = kernels.layout,
                    .out_features = source.rows(),
                    .in_features = source.cols(),
                    .data = packed.data()};
    return weight;
}

Weight::Weight(const DeviceContext& device, const tensor::TensorView& source,
               std::span<std::byte> memory, Rounding rounding)
    : Weight(adopt(device, source, memory, rounding)) {
    const Kernels& kernels = *device.kernels;
    const std::int64_t tile = kernels.tile_columns;
    const std::int64_t tiles = ceil_div(view_.out_features, tile);
    const std::int64_t item_tiles = std::max<std::int64_t>(1, 32 / tile);
    device.team->for_each(ceil_div(tiles, item_tiles), [&](std::int64_t item) {
        const std::int64_t begin = item * item_tiles * tile;
        kernels.pack({.dtype = source.dtype,
                      .out_features = view_.out_features,
                      .in_features = view_.in_features,
                      .source = source.data,
                      .packed = memory.data(),
                      .column_begin = begin,
                      .column_end = std::min(begin + item_tiles * tile, view_.out_features)});
    });
}

bool takes_int8(const DeviceContext& device, const Weight& weight) {
    return device.activation_mode == ActivationMode::kAuto &&
           tensor::info(weight.view().dtype).is_quantized;
}

bool takes_bf16(const DeviceContext& device, const Weight& weight) {
    return device.activation_mode == ActivationMode::kAuto && device.kernels->multiplies_bf16 &&
           weight.view().dtype == tensor::DType::kBF16 && weight.in_features() % 2 == 0;
}

bool rounds_twice(const DeviceContext& device, const Weight& weight) {
    return weight.rounding() == Rounding::kTwice && takes_int8(device, weight);
}

}  // namespace pagoda::kernels
