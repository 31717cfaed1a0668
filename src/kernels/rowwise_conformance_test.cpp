// Norms, RoPE and gates: every variant against ref within the bounds of conformance.h, rows alone
// against rows in a batch, and the split over threads.

#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/thread_team.h"
#include "kernels/conformance.h"
#include "kernels/ops/elementwise.h"
#include "kernels/registry.h"

namespace pagoda::kernels {
namespace {

std::vector<const Kernels*> runnable_variants() {
    std::vector<const Kernels*> variants;
    for (const Kernels& kernels : all_variants()) {
        if (contains(detect_cpu_features(), kernels.required)) variants.push_back(&kernels);
    }
    return variants;
}

std::vector<float> random_values(std::int64_t count, float size, unsigned seed, float mean = 0) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal(mean, size);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = normal(engine);
    return values;
}

float largest(const std::vector<float>& values) {
    float max = 0;
    for (const float value : values) max = std::max(max, std::abs(value));
    return max;
}

class Rowwise : public testing::TestWithParam<const Kernels*> {
  protected:
    const Kernels& kernels() const { return *GetParam(); }
    const Kernels& ref() const { return all_variants().front(); }
};
INSTANTIATE_TEST_SUITE_P(Variants, Rowwise, testing::ValuesIn(runnable_variants()),
                         [](const auto& variant) { return std::string(variant.param->name); });

constexpr std::int64_t kColumns[] = {1, 2, 7, 15, 16, 17, 63, 64, 65, 80, 576, 1536, 2053, 8192};

struct NormInput {
    std::int64_t cols;
    std::vector<float> x, weight, bias;
    NormInput(std::int64_t rows, std::int64_t num_cols, float mean)
        : cols(num_cols),
          x(random_values(rows * num_cols, 3, 1, mean)),
          weight(random_values(num_cols, 1, 2)),
          bias(random_values(num_cols, 1, 3)) {}

    std::vector<float> rms(const Kernels& kernels, std::int64_t row, std::int64_t rows) const {
        std::vector<float> out(static_cast<std::size_t>(rows * cols));
        kernels.rms_norm({.in = x.data() + row * cols,
                          .in_stride = cols,
                          .out = out.data(),
                          .out_stride = cols,
                          .weight = weight.data(),
                          .rows = rows,
                          .cols = cols,
                          .epsilon = 1e-5F});
        return out;
    }
    std::vector<float> layer(const Kernels& kernels, std::int64_t row, std::int64_t rows) const {
        std::vector<float> out(static_cast<std::size_t>(rows * cols));
        kernels.layer_norm({.in = x.data() + row * cols,
                            .in_stride = cols,
                            .out = out.data(),
                            .out_stride = cols,
                            .weight = weight.data(),
                            .bias = row % 2 == 0 ? bias.data() : nullptr,
                            .rows = rows,
                            .cols = cols,
                            .epsilon = 1e-5F});
        return out;
    }
};

TEST_P(Rowwise, NormsStayWithinTheirBoundOfRef) {
    for (const std::int64_t cols : kColumns) {
        for (const float mean : {0.0F, 50.0F}) {
            const NormInput input(1, cols, mean);
            const std::vector<float> rms = input.rms(ref(), 0, 1);
            const std::vector<float> layer = input.layer(ref(), 0, 1);
            const std::vector<float> found_rms = input.rms(kernels(), 0, 1);
            const std::vector<float> found_layer = input.layer(kernels(), 0, 1);
            // One or two columns deviate by less than `mean` suggests; they are all mean.
            const float loss = cols < 7 ? 1e4F : 1 + std::abs(mean) / 2;
            const float rms_bound = kNormBound * largest(rms);
            const float layer_bound = kNormBound * loss * largest(layer);
            for (std::size_t i = 0; i < rms.size(); ++i) {
                ASSERT_NEAR(found_rms[i], rms[i], rms_bound) << cols;
                ASSERT_NEAR(found_layer[i], layer[i], layer_bound) << cols;
            }
        }
    }
}

// The squares of these leave f32, or a sum of the values itself does.
TEST_P(Rowwise, NormsOfHugeRowsStayWithinTheirBoundOfRef) {
    for (const float size : {1e18F, 1e20F, 1e30F, 1e37F}) {
        for (const std::int64_t cols : {16, 577, 8192}) {
            NormInput input(1, cols, 0);
            for (float& value : input.x) value *= size;
            const std::vector<float> rms = input.rms(ref(), 0, 1);
            const std::vector<float> layer = input.layer(ref(), 0, 1);
            const std::vector<float> found_rms = input.rms(kernels(), 0, 1);
            const std::vector<float> found_layer = input.layer(kernels(), 0, 1);
            const float rms_bound = kNormBound * largest(rms);
            const float layer_bound = 2 * kNormBound * largest(layer);
            for (std::size_t i = 0; i < rms.size(); ++i) {
                ASSERT_NEAR(found_rms[i], rms[i], rms_bound) << size << " " << cols;
                ASSERT_NEAR(found_layer[i], layer[i], layer_bound) << size;
            }
        }
    }
}

TEST_P(Rowwise, ANormOfARowAloneHasTheBitsOfTheBatch) {
    const NormInput input(5, 577, 1);
    const std::vector<float> batch = input.rms(kernels(), 0, 5);
    for (std::int64_t row = 0; row < 5; ++row) {
        const std::vector<float> alone = input.rms(kernels(), row, 1);
        for (std::int64_t c = 0; c < 577; ++c) {
            ASSERT_EQ(alone[static_cast<std::size_t>(c)],
                      batch[static_cast<std::size_t>(row * 577 + c)]);
        }
    }
}

TEST_P(Rowwise, NormsWorkInPlaceAndSpreadNanOverTheirRowAlone) {
    NormInput input(3, 100, 0);
    input.x[150] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> apart = input.rms(kernels(), 0, 3);
    kernels().rms_norm({.in = input.x.data(),
                        .in_stride = 100,
                        .out = input.x.data(),
                        .out_stride = 100,
                        .weight = input.weight.data(),
                        .rows = 3,
                        .cols = 100,
                        .epsilon = 1e-5F});
    for (std::size_t i = 0; i < 300; ++i) {
        EXPECT_TRUE(same_bits(apart[i], input.x[i]));
        EXPECT_EQ(std::isnan(apart[i]), i / 100 == 1);
    }
}

struct RopeShape {
    std::int64_t heads, head_dim, rotary_dim;
    RopeStyle style;
};

std::vector<float> rotated(const Kernels& kernels, const RopeShape& shape,
                           const std::vector<float>& x, std::int64_t rows) {
    std::vector<float> out = x;
    const std::int64_t pairs = shape.rotary_dim / 2;
    std::vector<float> cos;
    std::vector<float> sin;
    for (std::int64_t i = 0; i < rows * pairs; ++i) {
        cos.push_back(std::cos(static_cast<float>(i)));
        sin.push_back(std::sin(static_cast<float>(i)));
    }
    kernels.rope({.x = out.data(),
                  .row_stride = shape.heads * shape.head_dim + 3,
                  .rows = rows,
                  .heads = shape.heads,
                  .head_dim = shape.head_dim,
                  .rotary_dim = shape.rotary_dim,
                  .cos = cos.data(),
                  .sin = sin.data(),
                  .style = shape.style});
    return out;
}

TEST_P(Rowwise, RopeStaysWithinItsBoundOfRef) {
    constexpr std::int64_t kRows = 3;
    for (const RopeStyle style : {RopeStyle::kInterleaved, RopeStyle::kHalves}) {
        for (const auto& [dim, rotary] : {std::pair{64, 64},
                                          {128, 128},
                                          {96, 96},
                                          {80, 32},
                                          {256, 64},
                                          {16, 2},
                                          {64, 0},
                                          {48, 38}}) {
            const RopeShape shape{2, dim, rotary, style};
            const std::vector<float> x = random_values(kRows * (2 * dim + 3), 1, 7);
            const std::vector<float> expected = rotated(ref(), shape, x, kRows);
            const std::vector<float> found = rotated(kernels(), shape, x, kRows);
            const float bound = kRopeBound * 2 * largest(x);
            for (std::size_t i = 0; i < x.size(); ++i) {
                ASSERT_NEAR(found[i], expected[i], bound) << dim << ", " << rotary << " at " << i;
                const std::int64_t column = static_cast<std::int64_t>(i) % (2 * dim + 3);
                const bool is_rotated = column < 2 * dim && column % dim < rotary;
                ASSERT_TRUE(is_rotated || found[i] == x[i]) << i;
            }
        }
    }
}

TEST(Rope, TurnsAPairByItsAngle) {
    const float cos[] = {0, 1};
    const float sin[] = {1, 0};
    float halves[] = {1, 2, 3, 4};
    float neighbours[] = {1, 2, 3, 4};
    RopeArgs args{.x = halves,
                  .row_stride = 4,
                  .rows = 1,
                  .heads = 1,
                  .head_dim = 4,
                  .rotary_dim = 4,
                  .cos = cos,
                  .sin = sin,
                  .style = RopeStyle::kHalves};
    all_variants().front().rope(args);
    EXPECT_EQ(std::vector<float>(halves, halves + 4), (std::vector<float>{-3, 2, 1, 4}));
    args.x = neighbours;
    args.style = RopeStyle::kInterleaved;
    all_variants().front().rope(args);
    EXPECT_EQ(std::vector<float>(neighbours, neighbours + 4), (std::vector<float>{-2, 1, 3, 4}));
}

constexpr GateKind kGates[] = {GateKind::kSilu, GateKind::kGeluTanh, GateKind::kGeluErf};

TEST_P(Rowwise, GatesStayWithinTheirBoundOfRef) {
    std::vector<float> x = random_values(20000, 4, 9);
    for (int i = -900; i <= 900; ++i) x.push_back(static_cast<float>(i) * 0.11F);
    for (const float value : {0.0F, -0.0F, 1e-30F, -1e-40F, 1e4F, -1e4F, 3e38F, -3e38F}) {
        x.push_back(value);
    }
    const auto count = static_cast<std::int64_t>(x.size());
    const std::vector<float> up = random_values(count, 2, 10);
    std::vector<float> expected(x.size());
    std::vector<float> found(x.size());
    for (const GateKind kind : kGates) {
        for (const float* factor : {up.data(), static_cast<const float*>(nullptr)}) {
            GateArgs args{.gate = x.data(),
                          .up = factor,
                          .out = expected.data(),
                          .count = count,
                          .kind = kind};
            ref().gate(args);
            args.out = found.data();
            kernels().gate(args);
            for (std::size_t i = 0; i < x.size(); ++i) {
                const float product = factor == nullptr ? x[i] : x[i] * up[i];
                if (!std::isfinite(expected[i])) {
                    ASSERT_TRUE(same_bits(found[i], expected[i])) << x[i];
                    continue;
                }
                ASSERT_NEAR(found[i], expected[i],
                            kGateBound * std::abs(expected[i]) + kGateTailBound * std::abs(product))
                    << x[i] << " kind " << static_cast<int>(kind);
            }
        }
    }
}

// Far on the negative side silu is x e^x, so that it shows the exponential's own error.
TEST_P(Rowwise, TheExponentialIsGoodToTwoUnitsInTheLastPlace) {
    for (float x = -87; x < -20; x += 0.0137F) {
        float out = 0;
        kernels().gate(
            {.gate = &x, .up = nullptr, .out = &out, .count = 1, .kind = GateKind::kSilu});
        const double exact = x / (1 + std::exp(-static_cast<double>(x)));
        // Two units of the exponential, half a unit each of the sum and the quotient.
        ASSERT_NEAR(out / exact, 1, 3.5 * 0x1p-23) << x;
    }
}

TEST_P(Rowwise, AGateOfNanIsNan) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (const GateKind kind : kGates) {
        float out = 0;
        kernels().gate({.gate = &nan, .up = nullptr, .out = &out, .count = 1, .kind = kind});
        EXPECT_TRUE(std::isnan(out));
    }
}

TEST_P(Rowwise, AGateDependsOnItsOwnValueAlone) {
    const std::vector<float> x = random_values(67, 3, 20);
    for (const GateKind kind : kGates) {
        std::vector<float> batch(67);
        kernels().gate(
            {.gate = x.data(), .up = nullptr, .out = batch.data(), .count = 67, .kind = kind});
        for (std::size_t i = 0; i < 67; ++i) {
            float alone = 0;
            kernels().gate({.gate = &x[i], .up = nullptr, .out = &alone, .count = 1, .kind = kind});
            ASSERT_EQ(alone, batch[i]);
        }
    }
}

TEST_P(Rowwise, ASoftCapStaysWithinItsBoundOfRef) {
    std::vector<float> x = random_values(20011, 30, 12);
    for (const float value : {0.0F, -0.0F, 1e-30F, -1e-42F, 3e38F, -3e38F, 31.25F, -31.25F})
        x.push_back(value);
    x.push_back(std::numeric_limits<float>::infinity());
    x.push_back(std::numeric_limits<float>::quiet_NaN());
    const auto count = static_cast<std::int64_t>(x.size());
    for (const float cap : {0.5F, 15.0F, 50.0F}) {
        std::vector<float> expected = x;
        std::vector<float> found = x;
        ref().soft_cap({.x = expected.data(), .count = count, .cap = cap});
        kernels().soft_cap({.x = found.data(), .count = count, .cap = cap});
        for (std::size_t i = 0; i < x.size(); ++i) {
            if (std::isnan(x[i])) {
                ASSERT_TRUE(std::isnan(found[i]));
                continue;
            }
            const float tiny = (1 + cap) * std::numeric_limits<float>::denorm_min();
            ASSERT_NEAR(found[i], expected[i], kSoftCapBound * std::abs(expected[i]) + tiny)
                << x[i] << " cap " << cap;
        }
        float alone = x[7];
        kernels().soft_cap({.x = &alone, .count = 1, .cap = cap});
        EXPECT_EQ(alone, found[7]) << "alone and in a batch";
    }
}

TEST_P(Rowwise, ASumHasTheBitsOfRef) {
    const std::vector<float> y = random_values(77, 3, 14);
    std::vector<float> expected = random_values(77, 3, 13);
    std::vector<float> found = expected;
    ref().add({.x = expected.data(), .y = y.data(), .count = 77});
    kernels().add({.x = found.data(), .y = y.data(), .count = 77});
    EXPECT_EQ(found, expected);
}

TEST_P(Rowwise, TheNumberOfThreadsChangesNoBit) {
    constexpr std::int64_t kRows = 70;
    constexpr std::int64_t kCols = 577;
    const NormInput input(kRows, kCols, 0);
    const auto all_steps = [&](int threads) {
        base::ThreadTeam team(threads);
        const DeviceContext device{.kernels = &kernels(), .team = &team};
        std::vector<float> out(input.x.size());
        rms_norm(device, {.in = input.x.data(),
                          .in_stride = kCols,
                          .out = out.data(),
                          .out_stride = kCols,
                          .weight = input.weight.data(),
                          .rows = kRows,
                          .cols = kCols,
                          .epsilon = 1e-6F});
        const auto count = static_cast<std::int64_t>(out.size());
        add(device, {.x = out.data(), .y = input.x.data(), .count = count});
        layer_norm(device, {.in = out.data(),
                            .in_stride = kCols,
                            .out = out.data(),
                            .out_stride = kCols,
                            .weight = input.weight.data(),
                            .bias = input.bias.data(),
                            .rows = kRows,
                            .cols = kCols,
                            .epsilon = 1e-6F});
        gate(device, {.gate = out.data(),
                      .up = input.x.data(),
                      .out = out.data(),
                      .count = count,
                      .kind = GateKind::kSilu});
        soft_cap(device, {.x = out.data(), .count = count, .cap = 5});
        return out;
    };
    const std::vector<float> one = all_steps(1);
    EXPECT_EQ(one, all_steps(2));
    EXPECT_EQ(one, all_steps(4));
    for (const float value : one) ASSERT_LE(std::abs(value), 5.0001F);
}

}  // namespace
}  // namespace pagoda::kernels
