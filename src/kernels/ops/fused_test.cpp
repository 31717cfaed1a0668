// Operators that do several steps in one region give the bits of the steps done one by one.

#include <gtest/gtest.h>

#include "kernels/conformance.h"
#include "kernels/ops/attention.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/heads.h"
#include "kernels/ops/linear.h"
#include "kernels/random_weight.h"
#include "kernels/registry.h"

namespace pagoda::kernels {
namespace {

using tensor::DType;

class FusedVariant : public testing::TestWithParam<const Kernels*> {};

std::vector<const Kernels*> runnable_variants() {
    std::vector<const Kernels*> result;
    for (const Kernels& variant : all_variants())
        if (contains(detect_cpu_features(), variant.required)) result.push_back(&variant);
    return result;
}

void expect_equal(const std::vector<float>& got, const std::vector<float>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_TRUE(same_bits(got[i], expected[i])) << i;
}

struct Matrix {
    DType dtype;
    std::int64_t out, in;
};
Weight packed(const DeviceContext& device, const Matrix& matrix, std::uint64_t seed,
              Rounding rounding = Rounding::kOnce) {
    const auto& [dtype, out, in] = matrix;
    const std::vector<std::byte> bytes = random_weight(dtype, out, in, seed);
    return Weight(device, {dtype, {out, in}, bytes.data(), bytes.size()}, rounding);
}

std::vector<float> product(const DeviceContext& device, const Weight& weight, Activations& in) {
    std::vector<float> out(static_cast<std::size_t>(in.rows() * weight.out_features()));
    linear(device, weight, in, {.out = out.data(), .stride = weight.out_features()});
    return out;
}

struct Mlp {
    DType gate, up, down;
};
// All int8; and each kind of reader or part that takes floats.
constexpr Mlp kMlps[] = {
    {DType::kQ4_0, DType::kQ4_0, DType::kQ8_0},
    {DType::kQ4_K, DType::kQ6_K, DType::kQ5_K},
    {DType::kQ4_0, DType::kQ4_0, DType::kBF16},
    {DType::kF16, DType::kQ4_0, DType::kQ4_0},
};
constexpr std::int64_t kHidden = 256;
constexpr std::int64_t kFfn = 768;

TEST_P(FusedVariant, AGatedLayerIsItsStepsOneByOne) {
    const std::vector<float> gate_bias = random_rows(1, kFfn, 11);
    const std::vector<float> up_bias = random_rows(1, kFfn, 12);
    for (const auto& [gate_type, up_type, down_type] : kMlps) {
        for (const int threads : {1, 2, 3}) {
            base::ThreadTeam team(threads);
            const DeviceContext device{GetParam(), &team};
            const Weight gate_weight = packed(device, {gate_type, kFfn, kHidden}, 1);
            const Weight up_weight = packed(device, {up_type, kFfn, kHidden}, 2);
            const Weight down = packed(device, {down_type, 64, kFfn}, 3);
            for (const std::int64_t rows : {1, 5, 130}) {
                const std::vector<float> x = random_rows(rows, kHidden, 4);
                Activations in(device, rows, kHidden);
                in.set(x.data(), rows, kHidden, kHidden);
                std::vector<float> gated(static_cast<std::size_t>(rows * kFfn));
                std::vector<float> up = gated;
                const LinearItem both[] = {
                    {&gate_weight, {.out = gated.data(), .stride = kFfn, .bias = gate_bias.data()}},
                    {&up_weight, {.out = up.data(), .stride = kFfn, .bias = up_bias.data()}}};
                linear_all(device, both, in);
                gate(device, {.gate = gated.data(),
                              .up = up.data(),
                              .out = gated.data(),
                              .count = rows * kFfn,
                              .kind = GateKind::kGeluTanh});
                Activations steps(device, rows, kFfn);
                steps.set(gated.data(), rows, kFfn, kFfn);
                const std::vector<float> expected = product(device, down, steps);

                Activations out(device, rows, kFfn);
                std::vector<float> gate_buffer(gated.size());
                std::vector<float> up_buffer(gated.size());
                linear_gated(device,
                             {.gate = &gate_weight,
                              .up = &up_weight,
                              .gate_bias = gate_bias.data(),
                              .up_bias = up_bias.data(),
                              .kind = GateKind::kGeluTanh,
                              .reader = &down},
                             in, {.gate = gate_buffer.data(), .up = up_buffer.data()}, out);
                expect_equal(product(device, down, out), expected);
            }
        }
    }
}

TEST_P(FusedVariant, NormedRowsAreRoundedAsTheyAreAfterwards) {
    constexpr std::int64_t kOut = 64;
    const std::vector<float> norm = random_rows(1, kHidden, 21);
    for (const Rounding rounding : {Rounding::kOnce, Rounding::kTwice}) {
        for (const DType dtype : {DType::kQ4_0, DType::kBF16}) {
            base::ThreadTeam team(2);
            const DeviceContext device{GetParam(), &team};
            const Weight weight = packed(device, {dtype, kOut, kHidden}, 5, rounding);
            for (const std::int64_t rows : {1, 200}) {
                const std::vector<float> x = random_rows(rows, kHidden, 6);
                std::vector<float> normed(x.size());
                const RmsNormArgs args{.in = x.data(),
                                       .in_stride = kHidden,
                                       .out = normed.data(),
                                       .out_stride = kHidden,
                                       .weight = norm.data(),
                                       .rows = rows,
                                       .cols = kHidden,
                                       .epsilon = 1e-5F};
                rms_norm(device, args);
                const std::vector<float> expected_rows = normed;
                Activations steps(device, rows, kHidden);
                steps.set(normed.data(), rows, kHidden, kHidden);
                const std::vector<float> expected = product(device, weight, steps);
                std::fill(normed.begin(), normed.end(), 0.0F);
                Activations fused(device, rows, kHidden);
                fused.set_rms_norm(device, args, weight);
                expect_equal(normed, expected_rows);
                expect_equal(product(device, weight, fused), expected);
            }
        }
    }
}

// Heads of one layer, their angles and their cache.
struct HeadCase {
    static constexpr std::int64_t kHeads = 6, kKvHeads = 2, kDim = 32, kRotary = 16;
    std::int64_t rows;
    std::vector<float> q = random_rows(rows, kHeads* kDim, 31);
    std::vector<float> k = random_rows(rows, kKvHeads* kDim, 32);
    std::vector<float> v = random_rows(rows, kKvHeads* kDim, 33);
    std::vector<float> cos = random_rows(rows, kRotary / 2, 34);
    std::vector<float> sin = random_rows(rows, kRotary / 2, 35);
    std::vector<float> norm = random_rows(1, kDim, 36);
    std::vector<std::int32_t> blocks, slots;
    std::vector<std::byte> memory;

    explicit HeadCase(std::int64_t count) : rows(count) {
        for (std::int64_t row = 0; row < rows;
             ++row) {  // every second slot, so that pairs are split
            blocks.push_back(static_cast<std::int32_t>(2 * row / kBlockTokens));
            slots.push_back(static_cast<std::int32_t>(2 * row % kBlockTokens));
        }
        memory.resize(block_bytes() * static_cast<std::size_t>(num_blocks()));
    }
    static std::size_t block_bytes() { return kv_block_bytes(KvDType::kBF16, kKvHeads, kDim); }
    [[nodiscard]] std::int64_t num_blocks() const { return 2 * rows / kBlockTokens + 1; }
    [[nodiscard]] PagedKvView view() {
        return {.dtype = KvDType::kBF16,
                .kv_heads = kKvHeads,
                .head_dim = kDim,
                .num_blocks = num_blocks(),
                .block_bytes = block_bytes(),
                .data = memory.data()};
    }
};

// What place_heads() does, by one call of each kernel.
void place_by_steps(const Kernels& kernels, HeadCase& heads) {
    const auto norm_and_rotate = [&](std::vector<float>& x, std::int64_t count) {
        kernels.rms_norm({.in = x.data(),
                          .in_stride = HeadCase::kDim,
                          .out = x.data(),
                          .out_stride = HeadCase::kDim,
                          .weight = heads.norm.data(),
                          .rows = heads.rows * count,
                          .cols = HeadCase::kDim,
                          .epsilon = 1e-6F});
        kernels.rope({.x = x.data(),
                      .row_stride = count * HeadCase::kDim,
                      .rows = heads.rows,
                      .heads = count,
                      .head_dim = HeadCase::kDim,
                      .rotary_dim = HeadCase::kRotary,
                      .cos = heads.cos.data(),
                      .sin = heads.sin.data(),
                      .style = RopeStyle::kHalves});
    };
    norm_and_rotate(heads.q, HeadCase::kHeads);
    norm_and_rotate(heads.k, HeadCase::kKvHeads);
    kernels.kv_write({.kv = heads.view(),
                      .k = heads.k.data(),
                      .v = heads.v.data(),
                      .k_stride = HeadCase::kKvHeads * HeadCase::kDim,
                      .v_stride = HeadCase::kKvHeads * HeadCase::kDim,
                      .rows = heads.rows,
                      .blocks = heads.blocks.data(),
                      .slots = heads.slots.data()});
}

TEST_P(FusedVariant, HeadsArePlacedAsByTheirStepsOneByOne) {
    for (const std::int64_t rows : {1, 300}) {
        HeadCase steps(rows);
        place_by_steps(*GetParam(), steps);
        for (const int threads : {1, 3}) {
            base::ThreadTeam team(threads);
            HeadCase fused(rows);
            place_heads({GetParam(), &team}, {.q = fused.q.data(),
                                              .k = fused.k.data(),
                                              .v = fused.v.data(),
                                              .rows = rows,
                                              .heads = HeadCase::kHeads,
                                              .kv_heads = HeadCase::kKvHeads,
                                              .head_dim = HeadCase::kDim,
                                              .q_norm = fused.norm.data(),
                                              .k_norm = fused.norm.data(),
                                              .norm_epsilon = 1e-6F,
                                              .rotary_dim = HeadCase::kRotary,
                                              .cos = fused.cos.data(),
                                              .sin = fused.sin.data(),
                                              .style = RopeStyle::kHalves,
                                              .kv = fused.view(),
                                              .blocks = fused.blocks.data(),
                                              .slots = fused.slots.data()});
            expect_equal(fused.q, steps.q);
            expect_equal(fused.k, steps.k);
            EXPECT_EQ(fused.memory, steps.memory);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Variants, FusedVariant, testing::ValuesIn(runnable_variants()),
                         [](const auto& param_info) {
                             return std::string(param_info.param->name);
                         });

}  // namespace
}  // namespace pagoda::kernels
