#pragma once
// A weight as the arithmetic sees it: runs of 32 values of a row, as whole numbers with scales.
// This is what each format means; dequantize and linear_int8 both follow from it. Pure functions.

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace pagoda::kernels::ref {

inline constexpr int kGroup = 32;
inline constexpr int kHalf = 16;  // Q2_K, Q3_K and Q6_K scale 16 values at a time

// value[i] = scale * (half_scale[i / 16] * code[i]) + minimum * half_minimum[i / 16]
//
// Both products are exact in f32. |half_scale * code| summed with int8 activations stays below
// 2^24, so that the integer dot product of a group is exact in f32 as well.
struct WeightGroup {
    std::int32_t code[kGroup] = {};
    std::int32_t half_scale[2] = {1, 1};
    std::int32_t half_minimum[2] = {1, 1};
    float scale = 0;
    float minimum = 0;
    bool has_minimum = false;
};

// Group `group` (values [32 * group, 32 * group + 32)) of a row of a block-quantised type.
WeightGroup weight_group(tensor::DType dtype, const std::byte* row, std::int64_t group);

// Values [begin, begin + count) of a row of F32, F16, BF16 or a block-quantised type. For a
// block-quantised type, begin and count are multiples of 32.
void dequantize_run(tensor::DType dtype, const std::byte* row, std::int64_t begin,
                    std::int64_t count, float* out);

}  // namespace pagoda::kernels::ref
