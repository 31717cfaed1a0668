#include "decode/philox.h"

#include <gtest/gtest.h>

namespace pagoda::decode {
namespace {

// The known answers that the paper's authors publish for philox4x32, 10 rounds.
TEST(Philox, GivesTheKnownAnswers) {
    EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
              (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    constexpr std::uint32_t kOnes = 0xffffffff;
    EXPECT_EQ(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
              (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(
        philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
        (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformDrawsDependOnSeedAndPositionAloneAndFillTheUnitInterval) {
    double sum = 0;
    double sum_of_squares = 0;
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) {
        const double draw = uniform_at(7, static_cast<std::uint64_t>(i));
        ASSERT_GE(draw, 0.0);
        ASSERT_LT(draw, 1.0);
        sum += draw;
        sum_of_squares += draw * draw;
    }
    EXPECT_NEAR(sum / kDraws, 0.5, 0.01);
    EXPECT_NEAR(sum_of_squares / kDraws, 1.0 / 3, 0.01);
    EXPECT_EQ(uniform_at(7, 123), uniform_at(7, 123));
    EXPECT_NE(uniform_at(7, 123), uniform_at(8, 123));
    EXPECT_NE(uniform_at(7, 123), uniform_at(7, 124));
    EXPECT_NE(uniform_at(7, 123), uniform_at(7 + (std::uint64_t{1} << 32), 123));
}

}  // namespace
}  // namespace pagoda::decode
