#pragma once
// How far a variant may be from ref/, operator by operator; the conformance tests and the fuzzers
// hold every variant to it. Pure functions.
//
// linear_int8, linear_f32, quantize, pack, dequantize: equal bits, because each order of summation
// is part of the specification (ref/linear.cpp). A NaN equals any NaN.

#include <bit>
#include <cmath>
#include <cstdint>

namespace pagoda::kernels {

[[nodiscard]] inline bool same_bits(float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
           (std::isnan(a) && std::isnan(b));
}

// kv_write: equal bits too. Floating-point sums and exponentials, which each variant orders and
// approximates in its own way:
//
// rms_norm, layer_norm: this share of the row's largest output; for layer_norm times 1 + |mean| /
// deviation, since subtracting a large mean loses digits in any order. For all finite rows, also
// those whose squares leave f32.
inline constexpr float kNormBound = 3e-6F;
// rope: this share of |a| + |b| of the pair.
inline constexpr float kRopeBound = 2.5e-7F;
// gate: this share of the result, plus this share of |gate * up| (the tails, where an activation
// is far smaller than its argument).
inline constexpr float kGateBound = 3e-6F;
inline constexpr float kGateTailBound = 2e-7F;
// soft_cap: this share of the result, and 1 + cap times the smallest subnormal. add: equal bits.
inline constexpr float kSoftCapBound = 6e-7F;
// attention, also of ref against exact arithmetic: this share of the largest |V|, times 1 + the
// largest |score|.
inline constexpr float kAttentionBound = 4e-6F;

}  // namespace pagoda::kernels
