#include "tensor/dtype.h"

#include <string>

#include <gtest/gtest.h>

namespace pagoda::tensor {
namespace {

constexpr DType kLast = DType::kMXFP4;

TEST(DType, IsFoundByItsName) {
    for (int index = 0; index <= static_cast<int>(kLast); ++index) {
        const auto dtype = static_cast<DType>(index);
        EXPECT_EQ(info(dtype).dtype, dtype);
        EXPECT_EQ(dtype_from_name(info(dtype).name), dtype) << info(dtype).name;
    }
    EXPECT_EQ(dtype_from_name("Q9_K"), std::nullopt);
    EXPECT_EQ(dtype_from_name(""), std::nullopt);
}

TEST(DType, TakesTheBytesThatTheFormatSays) {
    EXPECT_EQ(row_bytes(DType::kF32, 7), 28U);
    EXPECT_EQ(row_bytes(DType::kBF16, 7), 14U);
    EXPECT_EQ(row_bytes(DType::kF64, 3), 24U);
    EXPECT_EQ(row_bytes(DType::kI8, 3), 3U);
    EXPECT_EQ(row_bytes(DType::kQ4_0, 64), 36U);
    EXPECT_EQ(row_bytes(DType::kQ4_1, 64), 40U);
    EXPECT_EQ(row_bytes(DType::kQ5_0, 64), 44U);
    EXPECT_EQ(row_bytes(DType::kQ5_1, 64), 48U);
    EXPECT_EQ(row_bytes(DType::kQ8_0, 64), 68U);
    EXPECT_EQ(row_bytes(DType::kQ2_K, 512), 168U);
    EXPECT_EQ(row_bytes(DType::kQ3_K, 512), 220U);
    EXPECT_EQ(row_bytes(DType::kQ4_K, 512), 288U);
    EXPECT_EQ(row_bytes(DType::kQ5_K, 512), 352U);
    EXPECT_EQ(row_bytes(DType::kQ6_K, 512), 420U);
    EXPECT_EQ(row_bytes(DType::kIQ4_NL, 64), 36U);
    EXPECT_EQ(row_bytes(DType::kIQ4_XS, 512), 272U);
    EXPECT_EQ(row_bytes(DType::kMXFP4, 64), 34U);
    EXPECT_EQ(row_bytes(DType::kQ4_K, 0), 0U);
}

TEST(DTypeDeathTest, HasNoBytesForABrokenBlock) {
    EXPECT_DEATH(static_cast<void>(row_bytes(DType::kQ4_0, 48)), "48 values");
    EXPECT_DEATH(static_cast<void>(row_bytes(DType::kF32, -1)), "-1 values");
    EXPECT_DEATH(static_cast<void>(info(static_cast<DType>(200))), "number 200");
}

}  // namespace
}  // namespace pagoda::tensor
