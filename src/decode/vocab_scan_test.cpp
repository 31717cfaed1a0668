#include "decode/vocab_scan.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace pagoda::decode {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_row(std::size_t size, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, 4);
    std::vector<float> row(size);
    for (float& value : row) value = normal(random);
    return row;
}

TEST(VocabScan, FindsPeakAndNanAtEveryOddSizeAndPlace) {
    for (const std::size_t size : {1U, 2U, 15U, 16U, 17U, 255U, 257U, 1000U}) {
        for (const std::size_t place : {std::size_t{0}, size / 2, size - 1}) {
            std::vector<float> row(size, -3.0F);
            row[place] = 2.5F;
            EXPECT_EQ(find_peak(row).value, 2.5F);
            EXPECT_FALSE(find_peak(row).has_nan);
            EXPECT_EQ(find_first(row, 2.5F), place);
            row[place] = kNan;
            EXPECT_TRUE(find_peak(row).has_nan) << size << " " << place;
        }
    }
    EXPECT_EQ(find_peak({}).value, -kInfinity);
    const std::vector<float> ties{1, 5, 5, 5};
    EXPECT_EQ(find_first(ties, 5.0F), 1U);
    EXPECT_EQ(find_first(ties, 9.0F), ties.size());
}

TEST(VocabScan, ExponentialIsWithinItsBoundAndVanishesFarBelow) {
    double worst = 0;
    for (double x = -87; x <= 0; x += 0.0007) {
        const auto argument = static_cast<float>(x);
        const double exact = std::exp(static_cast<double>(argument));
        worst = std::max(worst,
                         std::abs(static_cast<double>(exp_of_nonpositive(argument)) / exact - 1));
    }
    EXPECT_LT(worst, 3e-7);
    EXPECT_EQ(exp_of_nonpositive(0.0F), 1.0F);
    EXPECT_EQ(exp_of_nonpositive(-kInfinity), 0.0F);
    EXPECT_EQ(exp_of_nonpositive(-100.0F), 0.0F);
}

TEST(VocabScan, LogarithmIsWithinItsBound) {
    double worst_float = 0;
    double worst_double = 0;
    for (double x = 1.2e-38; x < 1e30; x *= 1.00123) {
        const auto rounded = static_cast<float>(x);
        const double exact = std::log(static_cast<double>(rounded));
        worst_float = std::max(
            worst_float,
            std::abs(static_cast<double>(log_of_nonnegative(rounded)) - exact) / std::abs(exact));
        worst_double = std::max(worst_double, std::abs(log_of_nonnegative(x) / std::log(x) - 1));
    }
    EXPECT_LT(worst_float, 3e-7);
    EXPECT_LT(worst_double, 5e-16);
    EXPECT_EQ(log_of_nonnegative(1.0F), 0.0F);
    EXPECT_EQ(log_of_nonnegative(1.0), 0.0);
    EXPECT_EQ(log_of_nonnegative(0.0F), -kInfinity);
    EXPECT_EQ(log_of_nonnegative(0.0), -std::numeric_limits<double>::infinity());
}

// A library's logarithm may take another way on another processor; these bits are for all of them.
TEST(VocabScan, LogarithmHasTheSameBitsEverywhere) {
    std::uint64_t bits = 0;
    for (int step = 1; step < 4000; ++step) {
        const float x = static_cast<float>(step) * 0x1.3p-9F;
        bits = bits * 31 + std::bit_cast<std::uint32_t>(log_of_nonnegative(x));
        bits = bits * 31 +
               std::bit_cast<std::uint64_t>(log_of_nonnegative(static_cast<double>(x) * 1e3));
    }
    EXPECT_EQ(bits, 4872580514934078087U);
}

TEST(VocabScan, SumsAgreeWithDoublePrecision) {
    const std::vector<float> row = random_row(10007, 1);
    const float peak = find_peak(row).value;
    double exact = 0;
    for (const float value : row)
        exact += std::exp(static_cast<double>(value) - static_cast<double>(peak));
    EXPECT_NEAR(sum_exp_row(row, peak) / exact, 1.0, 1e-6);
    std::vector<float> weights = row;
    exp_row(weights, peak, 1.0F);
    EXPECT_EQ(sum_row(weights), sum_exp_row(row, peak));
}

TEST(VocabScan, PicksByMassAndNeverAnEntryWithoutWeight) {
    std::vector<float> weights(1000, 0.0F);
    weights[3] = 1;
    weights[300] = 2;
    weights[998] = 1;
    EXPECT_EQ(pick_by_mass(weights, 0.0), 3U);
    EXPECT_EQ(pick_by_mass(weights, 0.2499), 3U);
    EXPECT_EQ(pick_by_mass(weights, 0.25), 300U);
    EXPECT_EQ(pick_by_mass(weights, 0.7499), 300U);
    EXPECT_EQ(pick_by_mass(weights, 0.75), 998U);
    EXPECT_EQ(pick_by_mass(weights, std::nextafter(1.0, 0.0)), 998U);
}

}  // namespace
}  // namespace pagoda::decode
