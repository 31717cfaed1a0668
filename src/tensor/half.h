#pragma once
// IEEE half and bfloat16 as bit patterns, exact conversions to float and round-to-nearest-even
// conversions from it (NaN stays NaN). Pure functions.

#include <bit>
#include <cstdint>

namespace pagoda::tensor {

[[nodiscard]] constexpr float bf16_to_float(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
[[nodiscard]] constexpr std::uint16_t float_to_bf16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
    return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}
[[nodiscard]] constexpr float f16_to_float(std::uint16_t bits) {
    const std::uint32_t sign = (bits & 0x8000U) << 16;
    const std::uint32_t exponent = (bits >> 10) & 0x1fU;
    const std::uint32_t mantissa = bits & 0x3ffU;
    if (exponent == 0x1fU) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
    if (exponent != 0)
        return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}
[[nodiscard]] constexpr std::uint16_t float_to_f16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return sign | 0x7e00U;
    if (magnitude >= 0x477ff000U) return sign | 0x7c00U;  // rounds to infinity
    if (magnitude < 0x38800000U) {                        // subnormal: the sum rounds to even
        const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
        return static_cast<std::uint16_t>(sign |
                                          (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U));
    }
    const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
}

}  // namespace pagoda::tensor
