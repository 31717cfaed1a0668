// The three linear kernels, and with them the order of every sum. One accumulator per output, from
// zero, k ascending, f32 with round-to-nearest-even; `fma` rounds once:
//
// int8: for each group of 32, with S0 and S1 the sums of the activation's codes in its halves
//     dot  = sum over both halves h of half_scale[h] * (integer dot product of the codes of h)
//     acc  = fma(float(dot), weight.scale * x.scale, acc)
//     and for types with a minimum
//     msum = half_minimum[0] * S0 + half_minimum[1] * S1
//     acc  = fma(weight.minimum, x.scale * float(msum), acc)
//
// f32: acc = fma(x[k], w[k], acc), with w[k] exactly dequantised.
//
// bf16: as VDPBF16PS does it. With y the activations rounded to bf16 (nearest even), subnormals of
// y, of w and of every sum taken for zero, for each pair of k
//     acc = fma(y[k + 1], w[k + 1], acc)
//     acc = fma(y[k], w[k], acc)
//
// Then bias and what `out` held are added, in this order. Variants keep these orders and so give
// the same bits.

#include <bit>
#include <cmath>

#include "kernels/ref/quantized_row.h"
#include "kernels/ref/variant.h"
#include "kernels/ref/weight_group.h"

namespace pagoda::kernels::ref {
namespace {

constexpr std::int64_t kRowBlock = 16;  // rows that share the decoding of a weight group

std::int64_t smaller(std::int64_t a, std::int64_t b) {
    return a < b ? a : b;
}

void store(const LinearArgs& args, std::int64_t row, std::int64_t column, float sum) {
    float& out = args.out[row * args.out_stride + column];
    if (args.bias != nullptr) sum += args.bias[column];
    out = args.accumulate ? out + sum : sum;
}

const std::byte* weight_row(const PackedWeightView& weight, std::int64_t column) {
    return weight.data +
           static_cast<std::size_t>(column) * tensor::row_bytes(weight.dtype, weight.in_features);
}

float add_group(const WeightGroup& w, const QuantizedRow& x, std::int64_t group, float acc) {
    std::int32_t dot = 0;
    for (int half = 0; half < 2; ++half) {
        std::int32_t partial = 0;
        for (int i = kHalf * half; i < kHalf * (half + 1); ++i)
            partial += w.code[i] * x.codes[group * kGroup + i];
        dot += w.half_scale[half] * partial;
    }
    acc = std::fma(static_cast<float>(dot), w.scale * x.scales[group], acc);
    if (!w.has_minimum) return acc;
    const std::int32_t sum =
        w.half_minimum[0] * x.half_sums[2 * group] + w.half_minimum[1] * x.half_sums[2 * group + 1];
    return std::fma(w.minimum, x.scales[group] * static_cast<float>(sum), acc);
}

void int8_column(const LinearArgs& args, std::int64_t column, std::int64_t first_row,
                 std::int64_t rows) {
    const std::int64_t cols = args.weight.in_features;
    const std::byte* weight = weight_row(args.weight, column);
    float acc[kRowBlock] = {};
    for (std::int64_t group = 0; group < cols / kGroup; ++group) {
        const WeightGroup w = weight_group(args.weight.dtype, weight, group);
        for (std::int64_t r = 0; r < rows; ++r) {
            const std::byte* row = args.in + (first_row + r) * args.in_stride;
            acc[r] = add_group(w, quantized_row(row, cols), group, acc[r]);
        }
    }
    for (std::int64_t r = 0; r < rows; ++r) store(args, first_row + r, column, acc[r]);
}

void f32_column(const LinearArgs& args, std::int64_t column, std::int64_t first_row,
                std::int64_t rows) {
    constexpr std::int64_t kRun = 256;
    const std::int64_t cols = args.weight.in_features;
    const std::byte* weight = weight_row(args.weight, column);
    float acc[kRowBlock] = {};
    for (std::int64_t begin = 0; begin < cols; begin += kRun) {
        const std::int64_t count = smaller(kRun, cols - begin);
        float w[kRun];
        dequantize_run(args.weight.dtype, weight, begin, count, w);
        for (std::int64_t r = 0; r < rows; ++r) {
            const auto* x =
                reinterpret_cast<const float*>(args.in + (first_row + r) * args.in_stride) + begin;
            for (std::int64_t k = 0; k < count; ++k) acc[r] = std::fma(x[k], w[k], acc[r]);
        }
    }
    for (std::int64_t r = 0; r < rows; ++r) store(args, first_row + r, column, acc[r]);
}

// Zero of its sign for a subnormal.
float flushed(float value) {
    return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value) : value;
}

// To nearest even; a NaN stays one.
float rounded_to_bf16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(flushed(value));
    if (std::isnan(value)) return std::bit_cast<float>((bits | 0x400000U) & 0xffff0000U);
    return std::bit_cast<float>((bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U);
}

float bf16_sum(const float* x, const std::byte* weight, std::int64_t cols) {
    float acc = 0;
    for (std::int64_t k = 0; k < cols; k += 2) {
        float w[2];
        dequantize_run(tensor::DType::kBF16, weight, k, 2, w);
        for (const int i : {1, 0})
            acc = flushed(std::fma(rounded_to_bf16(x[k + i]), flushed(w[i]), acc));
    }
    return acc;
}

}  // namespace

void linear_int8(const LinearArgs& args) noexcept {
    for (std::int64_t column = args.column_begin; column < args.column_end; ++column)
        for (std::int64_t row = 0; row < args.rows; row += kRowBlock)
            int8_column(args, column, row, smaller(kRowBlock, args.rows - row));
}

void linear_f32(const LinearArgs& args) noexcept {
    for (std::int64_t column = args.column_begin; column < args.column_end; ++column)
        for (std::int64_t row = 0; row < args.rows; row += kRowBlock)
            f32_column(args, column, row, smaller(kRowBlock, args.rows - row));
}

void linear_bf16(const LinearArgs& args) noexcept {
    for (std::int64_t column = args.column_begin; column < args.column_end; ++column)
        for (std::int64_t row = 0; row < args.rows; ++row)
            store(args, row, column,
                  bf16_sum(reinterpret_cast<const float*>(args.in + row * args.in_stride),
                           weight_row(args.weight, column), args.weight.in_features));
}

}  // namespace pagoda::kernels::ref
