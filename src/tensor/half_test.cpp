#include "tensor/half.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace pagoda::tensor {
namespace {

bool is_f16_nan(std::uint16_t bits) {
    return (bits & 0x7c00U) == 0x7c00U && (bits & 0x3ffU) != 0;
}

// The definition of binary16, by arithmetic.
double f16_value(std::uint16_t bits) {
    const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
    const int exponent = (bits >> 10) & 31;
    const int mantissa = bits & 0x3ff;
    if (exponent == 31) return sign * std::numeric_limits<double>::infinity();
    if (exponent == 0) return sign * std::ldexp(mantissa, -24);
    return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, HasTheValueOfItsDefinition) {
    for (std::uint32_t bits = 0; bits <= 0xffffU; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        if (is_f16_nan(half)) {
            EXPECT_TRUE(std::isnan(f16_to_float(half)));
            EXPECT_TRUE(is_f16_nan(float_to_f16(f16_to_float(half))));
        } else {
            ASSERT_EQ(f16_to_float(half), f16_value(half)) << bits;
            ASSERT_EQ(float_to_f16(f16_to_float(half)), half) << bits;
        }
    }
}

TEST(Half, RoundsToTheNearestAndTiesToEven) {
    for (std::uint16_t bits = 0; bits < 0x7bffU; ++bits) {
        const double low = f16_value(bits);
        const double high = f16_value(static_cast<std::uint16_t>(bits + 1));
        const auto middle = static_cast<float>((low + high) / 2);
        const auto even = static_cast<std::uint16_t>(bits % 2 == 0 ? bits : bits + 1);
        ASSERT_EQ(float_to_f16(middle), even) << bits;
        ASSERT_EQ(float_to_f16(std::nextafter(middle, 0.0F)), bits) << bits;
        ASSERT_EQ(float_to_f16(std::nextafter(middle, 1e9F)), bits + 1) << bits;
        ASSERT_EQ(float_to_f16(-middle), even | 0x8000U) << bits;
    }
}

TEST(Half, OverflowsToInfinityFromTheMiddleOn) {
    EXPECT_EQ(float_to_f16(65504.0F), 0x7bffU);
    EXPECT_EQ(float_to_f16(std::nextafter(65520.0F, 0.0F)), 0x7bffU);
    EXPECT_EQ(float_to_f16(65520.0F), 0x7c00U);
    EXPECT_EQ(float_to_f16(std::numeric_limits<float>::infinity()), 0x7c00U);
    EXPECT_EQ(float_to_f16(-1e30F), 0xfc00U);
    EXPECT_EQ(float_to_f16(1e-30F), 0U);
}

TEST(Bfloat, RoundsToTheNearestAndTiesToEven) {
    for (std::uint32_t bits = 0; bits <= 0xffffU; ++bits) {
        const auto stored = static_cast<std::uint16_t>(bits);
        const float value = bf16_to_float(stored);
        if (std::isnan(value)) {
            EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(value))));
            continue;
        }
        ASSERT_EQ(float_to_bf16(value), stored) << bits;
        if (std::isinf(value)) continue;
        const float tie = std::bit_cast<float>((bits << 16) | 0x8000U);
        ASSERT_EQ(float_to_bf16(tie), bits % 2 == 0 ? bits : bits + 1) << bits;
        ASSERT_EQ(float_to_bf16(std::bit_cast<float>((bits << 16) | 0x7fffU)), bits) << bits;
        ASSERT_EQ(float_to_bf16(std::bit_cast<float>((bits << 16) | 0x8001U)), bits + 1) << bits;
    }
}

TEST(Bfloat, KeepsANanWhosePayloadIsInTheLowBits) {
    EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7f800001U)))));
    EXPECT_TRUE(is_f16_nan(float_to_f16(std::bit_cast<float>(0x7f800001U))));
}

}  // namespace
}  // namespace pagoda::tensor
