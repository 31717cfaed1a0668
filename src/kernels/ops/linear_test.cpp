#include "kernels/ops/linear.h"

#include <gtest/gtest.h>

#include "kernels/conformance.h"
#include "kernels/random_weight.h"
#include "kernels/registry.h"

namespace pagoda::kernels {
namespace {

using tensor::DType;
using tensor::TensorView;

const Kernels& best() {
    return **choose_variant("", detect_cpu_features());
}

TensorView view_of(DType dtype, std::int64_t out, std::int64_t in,
                   const std::vector<std::byte>& bytes) {
    return {dtype, {out, in}, bytes.data(), bytes.size()};
}

struct Layer {
    DType dtype;
    std::int64_t out, in;
    std::vector<std::byte> bytes;
    std::vector<float> bias;

    Layer(DType type, std::int64_t outputs, std::int64_t inputs, std::uint64_t seed)
        : dtype(type),
          out(outputs),
          in(inputs),
          bytes(random_weight(type, outputs, inputs, seed)),
          bias(random_rows(1, outputs, seed + 1)) {}
    [[nodiscard]] TensorView view() const { return view_of(dtype, out, in, bytes); }
};

// What one thread computes without the operator.
std::vector<float> expected(const Layer& layer, const std::vector<float>& x, std::int64_t rows,
                            LinearSum sum, const Kernels& kernels = best()) {
    std::vector<float> out(static_cast<std::size_t>(rows * layer.out));
    LinearProbe(kernels, layer.dtype, layer.out, layer.in, layer.bytes)
        .run(x.data(), rows, out.data(), {.sum = sum, .bias = layer.bias.data()});
    return out;
}

bool equal(const std::vector<float>& a, const std::vector<float>& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!same_bits(a[i], b[i])) return false;
    return a.size() == b.size();
}

TEST(Linear, AnyNumberOfThreadsAndRowsGivesTheSameBits) {
    const Layer layer(DType::kQ4_0, 1000, 256, 5);
    for (const int threads : {1, 2, 3}) {
        base::ThreadTeam team(threads);
        const DeviceContext device{&best(), &team};
        const Weight weight(device, layer.view());
        EXPECT_EQ(weight.bytes(), packed_weight_bytes(best(), layer.view()));
        for (const std::int64_t rows : {1, 7, 300}) {
            const std::vector<float> x = random_rows(rows, 256, 6);
            Activations in(device, 300, 256);
            in.set(x.data(), rows, 256, 256);
            std::vector<float> out(static_cast<std::size_t>(rows * 1000));
            linear(device, weight, in,
                   {.out = out.data(), .stride = 1000, .bias = layer.bias.data()});
            EXPECT_TRUE(equal(out, expected(layer, x, rows, LinearSum::kInt8)))
                << threads << " threads, " << rows << " rows";
        }
    }
}

TEST(Linear, LayersOfOneRegionAreAsTheyAreAlone) {
    const Layer q(DType::kQ8_0, 96, 128, 1);
    const Layer k(DType::kQ4_1, 33, 128, 2);
    const Layer v(DType::kBF16, 65, 128, 3);
    base::ThreadTeam team(2);
    const DeviceContext device{&best(), &team};
    const Weight weights[] = {Weight(device, q.view()), Weight(device, k.view()),
                              Weight(device, v.view())};
    const std::int64_t rows = 40;
    const std::vector<float> x = random_rows(rows, 128, 4);
    Activations in(device, rows, 128);
    in.set(x.data(), rows, 128, 128);
    std::vector<float> out_q(rows * 96);
    std::vector<float> out_k(rows * 33);
    std::vector<float> out_v(rows * 65);
    const LinearItem items[] = {
        {&weights[0], {.out = out_q.data(), .stride = 96, .bias = q.bias.data()}},
        {&weights[1], {.out = out_k.data(), .stride = 33, .bias = k.bias.data()}},
        {&weights[2], {.out = out_v.data(), .stride = 65, .bias = v.bias.data()}},
    };
    linear_all(device, items, in);
    EXPECT_TRUE(equal(out_q, expected(q, x, rows, LinearSum::kInt8)));
    EXPECT_TRUE(equal(out_k, expected(k, x, rows, LinearSum::kInt8)));
    EXPECT_TRUE(equal(
        out_v, expected(v, x, rows, best().multiplies_bf16 ? LinearSum::kBf16 : LinearSum::kF32)));
}

// Experts: rows gathered by expert, some with none, one with all, two that overlap.
TEST(Linear, RangesOfRowsAreAsTheyAreAlone) {
    struct Range {
        std::int64_t first, rows;
    };
    constexpr Range kRanges[] = {{0, 1}, {1, 0}, {1, 130}, {60, 7}, {131, -1}, {0, -1}, {150, 0}};
    constexpr std::int64_t kRows = 150;
    for (const DType dtype : {DType::kQ4_0, DType::kQ6_K, DType::kF32}) {
        const std::vector<float> x = random_rows(kRows, 256, 4);
        for (const int threads : {1, 2}) {
            base::ThreadTeam team(threads);
            const DeviceContext device{&best(), &team};
            std::vector<Layer> layers;
            std::vector<Weight> weights;
            std::vector<std::vector<float>> outs;
            std::vector<LinearItem> items;
            for (const Range& range : kRanges) {
                layers.emplace_back(dtype, 40 + 30 * range.first % 70, 256, 5 + layers.size());
                weights.emplace_back(device, layers.back().view());
                outs.emplace_back(static_cast<std::size_t>(kRows * layers.back().out), -1.0F);
            }
            for (std::size_t i = 0; i < layers.size(); ++i)
                items.push_back({.weight = &weights[i],
                                 .out = {.out = outs[i].data(),
                                         .stride = layers[i].out,
                                         .bias = layers[i].bias.data()},
                                 .first_row = kRanges[i].first,
                                 .rows = kRanges[i].rows});
            Activations in(device, kRows, 256);
            in.set(x.data(), kRows, 256, 256);
            linear_all(device, items, in);
            for (std::size_t i = 0; i < layers.size(); ++i) {
                const Range& range = kRanges[i];
                const std::int64_t rows = range.rows < 0 ? kRows - range.first : range.rows;
                const std::vector<float> part(x.begin() + range.first * 256, x.end());
                std::vector<float> wanted =
                    expected(layers[i], part, rows,
                             tensor::info(dtype).is_quantized ? LinearSum::kInt8 : LinearSum::kF32);
                wanted.resize(outs[i].size(), -1.0F);
                EXPECT_TRUE(equal(outs[i], wanted)) << "item " << i << ", threads " << threads;
            }
        }
    }
}

TEST(Linear, TheF32ModeDoesNotRoundActivations) {
    const Layer layer(DType::kQ4_K, 64, 256, 9);
    base::ThreadTeam team(2);
    const DeviceContext device{&best(), &team, ActivationMode::kF32};
    const Weight weight(device, layer.view());
    const std::vector<float> x = random_rows(3, 256, 8);
    Activations in(device, 3, 256);
    in.set(x.data(), 3, 256, 256);
    std::vector<float> out(3 * 64);
    linear(device, weight, in, {.out = out.data(), .stride = 64, .bias = layer.bias.data()});
    EXPECT_TRUE(equal(out, expected(layer, x, 3, LinearSum::kF32)));
}

// A table that multiplies bf16, whatever the machine.
Kernels bf16_kernels() {
    Kernels kernels = all_variants().front();
    kernels.multiplies_bf16 = true;
    return kernels;
}

TEST(Linear, Bf16WeightsOfEvenInputsAreMultipliedInBf16WhereTheVariantDoes) {
    const Kernels kernels = bf16_kernels();
    base::ThreadTeam team(1);
    for (const std::int64_t inputs : {64, 65}) {
        const Layer layer(DType::kBF16, 33, inputs, 9);
        const std::vector<float> x = random_rows(3, inputs, 8);
        for (const ActivationMode mode : {ActivationMode::kAuto, ActivationMode::kF32}) {
            const DeviceContext device{&kernels, &team, mode};
            const Weight weight(device, layer.view());
            Activations in(device, 3, inputs);
            in.set(x.data(), 3, inputs, inputs);
            std::vector<float> out(3 * 33);
            linear(device, weight, in,
                   {.out = out.data(), .stride = 33, .bias = layer.bias.data()});
            const bool is_bf16 = inputs == 64 && mode == ActivationMode::kAuto;
            EXPECT_EQ(equal(out, expected(layer, x, 3, LinearSum::kF32, kernels)), !is_bf16);
            if (is_bf16) {
                EXPECT_TRUE(equal(out, expected(layer, x, 3, LinearSum::kBf16, kernels)));
            }
        }
    }
}

TEST(Linear, NewContentsAreQuantisedAnew) {
    const Layer layer(DType::kQ4_0, 32, 64, 9);
    base::ThreadTeam team(1);
    const DeviceContext device{&best(), &team};
    const Weight weight(device, layer.view());
    Activations in(device, 1, 64);
    for (const std::uint64_t seed : {1, 2}) {
        const std::vector<float> x = random_rows(1, 64, seed);
        in.set(x.data(), 1, 64, 64);
        std::vector<float> out(32);
        linear(device, weight, in, {.out = out.data(), .stride = 32, .bias = layer.bias.data()});
        EXPECT_TRUE(equal(out, expected(layer, x, 1, LinearSum::kInt8)));
    }
}

TEST(Linear, NoRowsAreNoWork) {
    const Layer layer(DType::kQ4_0, 32, 64, 9);
    base::ThreadTeam team(2);
    const DeviceContext device{&best(), &team};
    const Weight weight(device, layer.view());
    Activations in(device, 4, 64);
    in.set(nullptr, 0, 64, 64);
    linear(device, weight, in, {.out = nullptr, .stride = 32});
}

TEST(Embed, GivesTheRowsOfTheTableTimesTheScale) {
    base::ThreadTeam team(2);
    const DeviceContext device{&best(), &team};
    for (const DType dtype : kWeightTypes) {
        const Layer table(dtype, 50, 512, 3);
        std::vector<float> all(50 * 512);
        best().dequantize({dtype, table.bytes.data(), 50, 512, all.data()});
        std::vector<std::int32_t> ids(120);
        for (int i = 0; i < 120; ++i) ids[static_cast<std::size_t>(i)] = i * 7 % 50;
        std::vector<float> out(ids.size() * 512);
        embed(device, table.view(), ids, 3.0F, out.data());
        for (std::size_t i = 0; i < ids.size(); ++i)
            for (std::size_t k = 0; k < 512; ++k)
                ASSERT_TRUE(same_bits(out[i * 512 + k],
                                      all[static_cast<std::size_t>(ids[i]) * 512 + k] * 3.0F));
    }
}

std::string refusal(const TensorView& view) {
    const base::Status status = supports_weight(best(), view);
    return status.ok() ? "" : status.error().message;
}

TEST(SupportsWeight, RefusesWithTheValueAndTheLimit) {
    const std::vector<std::byte> bytes(4096);
    EXPECT_EQ(refusal({DType::kQ4_0, {2, 64}, bytes.data(), bytes.size()}), "");
    EXPECT_EQ(refusal({DType::kI32, {2, 64}, bytes.data(), bytes.size()}),
              "a weight cannot have the type I32; F32, F16, BF16 and the block-quantised types can "
              "be used");
    EXPECT_EQ(refusal({DType::kF32, {64}, bytes.data(), bytes.size()}),
              "a weight needs 2 dimensions, this has 1");
    EXPECT_EQ(refusal({DType::kF32, {0, 64}, bytes.data(), bytes.size()}),
              "a weight of 0 x 64 is outside 1 to 1073741824 each way");
    EXPECT_EQ(refusal({DType::kQ4_K, {2, 320}, bytes.data(), bytes.size()}),
              "rows of 320 values are not whole blocks of 256 (Q4_K)");
    EXPECT_EQ(refusal({DType::kF32, {100, 64}, bytes.data(), bytes.size()}),
              "a weight of 100 x 64 in F32 needs 25600 bytes, there are 4096");
}

}  // namespace
}  // namespace pagoda::kernels
