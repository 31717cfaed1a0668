#include "model/decoder_spec.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

namespace pagoda::model {
namespace {

// cos and sin of one position.
std::pair<std::vector<float>, std::vector<float>> angles(const RopeTable& table,
                                                         std::int64_t position) {
    std::vector<float> cos(static_cast<std::size_t>(table.pairs()));
    std::vector<float> sin(cos.size());
    table.write(position, cos.data(), sin.data());
    return {cos, sin};
}

double frequency(const RopeSpec& spec, std::size_t pair, const std::vector<float>& divisors = {}) {
    const auto [cos, sin] = angles(RopeTable(spec, divisors), 1);
    return std::atan2(static_cast<double>(sin[pair]), static_cast<double>(cos[pair]));
}

TEST(RopeTable, FrequenciesArePowersOfTheBase) {
    const RopeSpec spec{.rotary_dim = 8, .freq_base = 10000};
    EXPECT_NEAR(frequency(spec, 0), 1.0, 1e-6);
    EXPECT_NEAR(frequency(spec, 1), 0.1, 1e-7);
    EXPECT_NEAR(frequency(spec, 3), 0.001, 1e-8);
}

TEST(RopeTable, LinearScalingStretchesAllPositions) {
    const RopeSpec spec{.rotary_dim = 8,
                        .freq_base = 10000,
                        .scaling = {.kind = RopeScalingKind::kLinear, .factor = 8}};
    EXPECT_NEAR(frequency(spec, 0), 1.0 / 8, 1e-7);
    EXPECT_NEAR(frequency(spec, 3), 0.001 / 8, 1e-9);
}

TEST(RopeTable, DivisorsDivideEachFrequency) {
    const RopeSpec spec{.rotary_dim = 8, .freq_base = 10000};
    EXPECT_NEAR(frequency(spec, 2, {1, 1, 32, 8}), 0.01 / 32, 1e-9);
    EXPECT_NEAR(frequency(spec, 0, {1, 1, 32, 8}), 1.0, 1e-6);
}

TEST(RopeTable, YarnKeepsFastPairsAndInterpolatesSlowOnes) {
    // Values of the formulas of arXiv:2309.00071 for 64 dimensions, base 10000, factor 4 over an
    // original context of 2048: pairs up to 8 are kept, pairs from 21 on are divided by 4.
    const RopeSpec spec{.rotary_dim = 64,
                        .freq_base = 10000,
                        .scaling = {.kind = RopeScalingKind::kYarn,
                                    .factor = 4,
                                    .original_context = 2048,
                                    .attention_factor = 1.0}};
    const auto plain = [](std::size_t pair) {
        return std::pow(10000.0, -static_cast<double>(pair) / 32.0);
    };
    const double low =
        std::floor(64 * std::log(2048 / (32 * 2 * std::numbers::pi)) / (2 * std::log(10000.0)));
    const double high =
        std::ceil(64 * std::log(2048 / (2 * std::numbers::pi)) / (2 * std::log(10000.0)));
    EXPECT_EQ(low, 8);
    EXPECT_EQ(high, 21);
    EXPECT_NEAR(frequency(spec, 8), plain(8), 1e-7);
    EXPECT_NEAR(frequency(spec, 21), plain(21) / 4, 1e-9);
    EXPECT_NEAR(frequency(spec, 31), plain(31) / 4, 1e-10);
    const double share = (14.0 - 8.0) / 13.0;
    EXPECT_NEAR(frequency(spec, 14), plain(14) / 4 * share + plain(14) * (1 - share), 1e-8);
}

TEST(RopeTable, TheAttentionFactorScalesBothParts) {
    const RopeSpec spec{.rotary_dim = 4, .scaling = {.attention_factor = 1.25}};
    const auto [cos, sin] = angles(RopeTable(spec, {}), 3);
    for (std::size_t pair = 0; pair < cos.size(); ++pair)
        EXPECT_NEAR(std::hypot(cos[pair], sin[pair]), 1.25, 1e-6);
}

TEST(RopeTable, FarPositionsKeepTheirPrecision) {
    const RopeSpec spec{.rotary_dim = 4, .freq_base = 500000};
    const auto [cos, sin] = angles(RopeTable(spec, {}), 100'000);
    EXPECT_NEAR(static_cast<double>(cos[0]), std::cos(100'000.0), 1e-7);
    EXPECT_NEAR(static_cast<double>(sin[0]), std::sin(100'000.0), 1e-7);
}

TEST(KvGroups, LayersOfOneWindowShareAGroup) {
    DecoderSpec spec;
    spec.layers = {{.window = 16}, {.window = 16}, {.window = 0}, {.window = 16}};
    const std::vector<KvGroup> groups = kv_groups(spec);
    ASSERT_EQ(groups.size(), 2U);
    EXPECT_EQ(groups[0].window, 16);
    EXPECT_EQ(groups[0].layers, (std::vector<std::int64_t>{0, 1, 3}));
    EXPECT_EQ(groups[1].layers, (std::vector<std::int64_t>{2}));
}

}  // namespace
}  // namespace pagoda::model
