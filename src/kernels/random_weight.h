#pragma once
// Weights and activations for tests, fuzzers and benches: any bytes make a block, its scales are
// kept finite and of ordinary size. Deterministic in the seed.

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/weight_format.h"
#include "tensor/half.h"

namespace pagoda::kernels {

// Every type that a weight can have.
inline constexpr tensor::DType kWeightTypes[] = {
    tensor::DType::kF32,  tensor::DType::kF16,    tensor::DType::kBF16,   tensor::DType::kQ4_0,
    tensor::DType::kQ4_1, tensor::DType::kQ5_0,   tensor::DType::kQ5_1,   tensor::DType::kQ8_0,
    tensor::DType::kQ2_K, tensor::DType::kQ3_K,   tensor::DType::kQ4_K,   tensor::DType::kQ5_K,
    tensor::DType::kQ6_K, tensor::DType::kIQ4_NL, tensor::DType::kIQ4_XS, tensor::DType::kMXFP4};

using Random = std::mt19937_64;

// Offset of the f16 scale in a block, and of the minimum, -1 where there is none.
struct ScaleFields {
    int scale = -1, minimum = -1;
};
[[nodiscard]] inline ScaleFields scale_fields(tensor::DType dtype) {
    using tensor::DType;
    switch (dtype) {
        case DType::kQ4_0:
        case DType::kQ5_0:
        case DType::kQ8_0:
        case DType::kIQ4_NL:
        case DType::kIQ4_XS:
            return {0, -1};
        case DType::kQ4_1:
        case DType::kQ5_1:
        case DType::kQ4_K:
        case DType::kQ5_K:
            return {0, 2};
        case DType::kQ2_K:
            return {80, 82};
        case DType::kQ3_K:
            return {108, -1};
        case DType::kQ6_K:
            return {208, -1};
        default:
            return {};
    }
}

inline void put_u16(std::byte* out, std::uint16_t bits) {
    out[0] = static_cast<std::byte>(bits & 255U);
    out[1] = static_cast<std::byte>(bits >> 8U);
}

// Makes the scales of one block ordinary numbers.
inline void tame_block(tensor::DType dtype, std::byte* block, Random& random) {
    std::uniform_real_distribution<float> size(0.002F, 0.02F);
    if (dtype == tensor::DType::kMXFP4) {
        block[0] = static_cast<std::byte>(118 + random() % 6);
        return;
    }
    const ScaleFields fields = scale_fields(dtype);
    const float sign = random() % 4 == 0 ? -1.0F : 1.0F;
    if (fields.scale >= 0) put_u16(block + fields.scale, tensor::float_to_f16(sign * size(random)));
    if (fields.minimum >= 0)
        put_u16(block + fields.minimum, tensor::float_to_f16(sign * size(random)));
}

// [rows, cols] as a file would hold them.
[[nodiscard]] inline std::vector<std::byte> random_weight(tensor::DType dtype, std::int64_t rows,
                                                          std::int64_t cols, std::uint64_t seed) {
    Random random(seed);
    std::vector<std::byte> bytes(static_cast<std::size_t>(rows) * tensor::row_bytes(dtype, cols));
    const tensor::DTypeInfo& type = tensor::info(dtype);
    const auto step = static_cast<std::size_t>(type.block_bytes);
    std::normal_distribution<float> normal(0.0F, 0.05F);
    for (std::size_t at = 0; at < bytes.size(); at += step) {
        if (type.is_quantized) {
            for (std::size_t i = 0; i < step; ++i)
                bytes[at + i] = static_cast<std::byte>(random() >> 56U);
            tame_block(dtype, bytes.data() + at, random);
            continue;
        }
        const float value = normal(random);
        const auto bits = std::bit_cast<std::uint32_t>(value);
        if (dtype == tensor::DType::kF32) {
            put_u16(bytes.data() + at, static_cast<std::uint16_t>(bits & 0xffffU));
            put_u16(bytes.data() + at + 2, static_cast<std::uint16_t>(bits >> 16U));
        } else {
            put_u16(bytes.data() + at, dtype == tensor::DType::kF16 ? tensor::float_to_f16(value)
                                                                    : tensor::float_to_bf16(value));
        }
    }
    return bytes;
}

[[nodiscard]] inline std::vector<float> random_rows(std::int64_t rows, std::int64_t cols,
                                                    std::uint64_t seed) {
    Random random(seed);
    std::normal_distribution<float> normal(0.0F, 1.0F);
    std::vector<float> values(static_cast<std::size_t>(rows * cols));
    for (float& value : values) value = normal(random);
    return values;
}

// Which of the table's three sums a layer is.
enum class LinearSum { kInt8, kF32, kBf16 };
[[nodiscard]] inline std::string_view name_of(LinearSum sum) {
    return sum == LinearSum::kInt8 ? "int8" : (sum == LinearSum::kF32 ? "f32" : "bf16");
}
// Those that a weight can meet.
[[nodiscard]] inline std::vector<LinearSum> sums_for(const Kernels& kernels, tensor::DType dtype,
                                                     std::int64_t in) {
    std::vector<LinearSum> sums{LinearSum::kF32};
    if (tensor::info(dtype).is_quantized) sums.push_back(LinearSum::kInt8);
    if (dtype == tensor::DType::kBF16 && in % 2 == 0 && kernels.linear_bf16 != nullptr)
        sums.push_back(LinearSum::kBf16);
    return sums;
}

// One linear layer through a variant's table, without threads. Used by tests and the fuzzer.
class LinearProbe {
  public:
    LinearProbe(const Kernels& kernels, tensor::DType dtype, std::int64_t out, std::int64_t in,
                std::span<const std::byte> source)
        : kernels_(kernels),
          packed_(kernels.packed_bytes(dtype, out, in)),
          weight_{dtype, kernels.layout, out, in, packed_.data()} {
        kernels.pack({.dtype = dtype,
                      .out_features = out,
                      .in_features = in,
                      .source = source.data(),
                      .packed = packed_.data(),
                      .column_begin = 0,
                      .column_end = out});
    }

    struct Options {
        LinearSum sum = LinearSum::kF32;
        const float* bias = nullptr;
        bool accumulate = false;
        std::int64_t column_begin = 0, column_end = -1;  // -1: all
    };
    // out: [rows, out_features]
    void run(const float* in, std::int64_t rows, float* out, const Options& options) const {
        const std::int64_t cols = weight_.in_features;
        std::vector<std::byte> quantized;
        LinearArgs args{
            .weight = weight_,
            .in = reinterpret_cast<const std::byte*>(in),
            .in_stride = cols * 4,
            .rows = rows,
            .out = out,
            .out_stride = weight_.out_features,
            .bias = options.bias,
            .accumulate = options.accumulate,
            .column_begin = options.column_begin,
            .column_end = options.column_end < 0 ? weight_.out_features : options.column_end};
        if (options.sum == LinearSum::kF32) return kernels_.linear_f32(args);
        if (options.sum == LinearSum::kBf16) return kernels_.linear_bf16(args);
        const std::size_t row_bytes = kernels_.quantized_row_bytes(cols);
        quantized.resize(static_cast<std::size_t>(rows) * row_bytes);
        kernels_.quantize({.in = in,
                           .in_stride = cols,
                           .rows = rows,
                           .col_begin = 0,
                           .col_end = cols,
                           .out = quantized.data(),
                           .cols = cols});
        args.in = quantized.data();
        args.in_stride = static_cast<std::int64_t>(row_bytes);
        kernels_.linear_int8(args);
    }

  private:
    const Kernels& kernels_;
    std::vector<std::byte> packed_;
    PackedWeightView weight_;
};

}  // namespace pagoda::kernels
