#pragma once
// The reference's layout of a quantised row of K values, G = K / 32 groups:
//
//   int8 code[K] | float scale[G] | int32 half_sum[G][2]
//
// half_sum: the codes of the first and of the last 16 values of a group, added up.

#include <cstddef>
#include <cstdint>

#include "kernels/args.h"

namespace pagoda::kernels::ref {

struct QuantizedRow {
    const std::int8_t* codes;
    const float* scales;
    const std::int32_t* half_sums;
};

inline QuantizedRow quantized_row(const std::byte* row, std::int64_t cols) {
    const std::int64_t groups = cols / kActivationGroup;
    const auto* scales = reinterpret_cast<const float*>(row + cols);
    return {reinterpret_cast<const std::int8_t*>(row), scales,
            reinterpret_cast<const std::int32_t*>(scales + groups)};
}

}  // namespace pagoda::kernels::ref
