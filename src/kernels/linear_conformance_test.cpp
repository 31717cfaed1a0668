// Every variant that this machine runs against ref/, over one table of cases and over random ones,
// to the bounds of conformance.h (equal bits). That an output depends on its own inputs only:
// linear_bits_test.cpp.

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "kernels/conformance.h"
#include "kernels/random_weight.h"
#include "kernels/registry.h"

namespace pagoda::kernels {
namespace {

// Variants that this machine runs, ref first.
std::vector<const Kernels*> runnable() {
    std::vector<const Kernels*> variants;
    const CpuFeature features = detect_cpu_features();
    for (const Kernels& kernels : all_variants())
        if (contains(features, kernels.required)) variants.push_back(&kernels);
    return variants;
}
const Kernels& reference() {
    return all_variants().front();
}

std::string describe(const Kernels& kernels, tensor::DType dtype, std::int64_t out, std::int64_t in,
                     std::int64_t rows) {
    return std::string(kernels.name) + " " + std::string(tensor::info(dtype).name) + " " +
           std::to_string(out) + " x " + std::to_string(in) + ", rows " + std::to_string(rows);
}

// The first output that differs, or -1.
std::int64_t first_difference(const std::vector<float>& a, const std::vector<float>& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!same_bits(a[i], b[i])) return static_cast<std::int64_t>(i);
    return -1;
}

// What the activations of a case are.
enum class Input { kNormal, kZeros, kTiny, kHuge, kOutlier, kNotFinite };

std::vector<float> make_input(Input kind, std::int64_t rows, std::int64_t cols) {
    std::vector<float> x = random_rows(rows, cols, 7);
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (kind == Input::kZeros) x[i] = 0;
        if (kind == Input::kTiny) x[i] *= i % 3 == 0 ? 1e-42F : 1e-33F;
        if (kind == Input::kHuge) x[i] *= 1e36F;
        if (kind == Input::kOutlier && i % 37 == 0) x[i] *= 1000;
        if (kind == Input::kNotFinite && i % 97 == 5)
            x[i] = i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN()
                              : -std::numeric_limits<float>::infinity();
    }
    return x;
}

struct Case {
    std::int64_t out;
    std::int64_t blocks;  // K in blocks of the type; for plain types in values, odd on purpose
    std::int64_t rows;
    Input input = Input::kNormal;
};
constexpr Case kCases[] = {
    {1, 1, 1},
    {1, 3, 2},
    {15, 1, 3},
    {16, 2, 1},
    {17, 1, 0},
    {31, 3, 4},
    {32, 2, 5},
    {33, 2, 6},
    {64, 1, 7},
    {70, 3, 1},
    {97, 1, 13},
    {40, 2, 48},
    {33, 1, 97},
    {32, 9, 2},
    {35, 2, 9, Input::kZeros},
    {35, 2, 9, Input::kTiny},
    {35, 2, 9, Input::kHuge},
    {35, 2, 9, Input::kOutlier},
    {35, 2, 9, Input::kNotFinite},
    {35, 2, 1, Input::kNotFinite},
};

std::int64_t in_features(tensor::DType dtype, std::int64_t blocks) {
    const int values = tensor::info(dtype).block_values;
    return values == 1 ? 37 * blocks - 36 : blocks * values;
}

std::int64_t even_if(bool wanted, std::int64_t value) {
    return wanted ? value + value % 2 : value;
}

// Every variant against the reference, with bias and accumulation and without.
void expect_as_reference(tensor::DType dtype, const Case& test, LinearSum sum) {
    const std::int64_t in = even_if(sum == LinearSum::kBf16, in_features(dtype, test.blocks));
    const std::vector<std::byte> source = random_weight(dtype, test.out, in, 11);
    const std::vector<float> x = make_input(test.input, test.rows, in);
    const std::vector<float> bias = random_rows(1, test.out, 13);
    const LinearProbe expected_layer(reference(), dtype, test.out, in, source);
    for (const bool accumulate : {false, true}) {
        const std::vector<float> before(static_cast<std::size_t>(test.rows * test.out), 0.25F);
        std::vector<float> expected = before;
        const LinearProbe::Options options{
            .sum = sum, .bias = accumulate ? bias.data() : nullptr, .accumulate = accumulate};
        expected_layer.run(x.data(), test.rows, expected.data(), options);
        for (const Kernels* kernels : runnable()) {
            if (sum == LinearSum::kBf16 && kernels->linear_bf16 == nullptr) continue;
            std::vector<float> got = before;
            LinearProbe(*kernels, dtype, test.out, in, source)
                .run(x.data(), test.rows, got.data(), options);
            EXPECT_EQ(first_difference(expected, got), -1)
                << describe(*kernels, dtype, test.out, in, test.rows) << " " << name_of(sum);
        }
    }
}

TEST(LinearConformance, EveryVariantGivesTheBitsOfTheReference) {
    for (const tensor::DType dtype : kWeightTypes) {
        for (const Case& test : kCases) {
            for (const LinearSum sum : sums_for(reference(), dtype, 2))
                expect_as_reference(dtype, test, sum);
        }
    }
}

TEST(LinearConformance, RandomLayersGiveTheBitsOfTheReference) {
    Random random(2024);
    for (int round = 0; round < 60; ++round) {
        const tensor::DType dtype = kWeightTypes[random() % std::size(kWeightTypes)];
        const Case test{static_cast<std::int64_t>(1 + random() % 80),
                        static_cast<std::int64_t>(1 + random() % 3),
                        static_cast<std::int64_t>(random() % 30), static_cast<Input>(random() % 6)};
        for (const LinearSum sum : sums_for(reference(), dtype, 2))
            expect_as_reference(dtype, test, sum);
    }
}

// Scales at the ends of their types: zeros, subnormals, the largest, infinities, NaN.
TEST(LinearConformance, ExtremeScalesGiveTheBitsOfTheReference) {
    constexpr std::uint16_t kScales[] = {0x0000, 0x8000, 0x0001, 0x83ff,
                                         0x7bff, 0xfbff, 0x7c00, 0x7e00};
    for (const Kernels* kernels : runnable()) {
        for (const tensor::DType dtype : kWeightTypes) {
            const ScaleFields fields = scale_fields(dtype);
            const tensor::DTypeInfo& type = tensor::info(dtype);
            if (!type.is_quantized) continue;
            const std::int64_t in = 2 * type.block_values;
            std::vector<std::byte> source = random_weight(dtype, 64, in, 3);
            for (std::size_t block = 0; block < 128; ++block) {
                std::byte* at = source.data() + block * static_cast<std::size_t>(type.block_bytes);
                if (fields.scale >= 0) put_u16(at + fields.scale, kScales[block % 8]);
                if (fields.minimum >= 0) put_u16(at + fields.minimum, kScales[block / 8 % 8]);
                if (dtype == tensor::DType::kMXFP4) at[0] = static_cast<std::byte>(block * 2);
            }
            const std::vector<float> x = random_rows(3, in, 5);
            for (const LinearSum sum : sums_for(*kernels, dtype, in)) {
                std::vector<float> expected(3 * 64);
                std::vector<float> got(3 * 64);
                LinearProbe(reference(), dtype, 64, in, source)
                    .run(x.data(), 3, expected.data(), {.sum = sum});
                LinearProbe(*kernels, dtype, 64, in, source)
                    .run(x.data(), 3, got.data(), {.sum = sum});
                EXPECT_EQ(first_difference(expected, got), -1)
                    << describe(*kernels, dtype, 64, in, 3) << " " << name_of(sum);
            }
        }
    }
}

TEST(LinearConformance, ANotFiniteActivationSpoilsItsOwnRowOnly) {
    constexpr std::int64_t kOut = 33;
    constexpr std::int64_t kRows = 9;
    for (const Kernels* kernels : runnable()) {
        for (const tensor::DType dtype : kWeightTypes) {
            if (!tensor::info(dtype).is_quantized) continue;
            for (const float bad : {std::numeric_limits<float>::quiet_NaN(),
                                    std::numeric_limits<float>::infinity()}) {
                std::vector<float> x = random_rows(kRows, 512, 4);
                x[4 * 512 + 300] = bad;
                std::vector<float> out(kRows * kOut);
                LinearProbe(*kernels, dtype, kOut, 512, random_weight(dtype, kOut, 512, 6))
                    .run(x.data(), kRows, out.data(), {.sum = LinearSum::kInt8});
                for (std::int64_t i = 0; i < kRows * kOut; ++i)
                    EXPECT_EQ(std::isnan(out[i]), i / kOut == 4)
                        << kernels->name << " " << tensor::info(dtype).name << " row " << i / kOut;
            }
        }
    }
}

// The bound that the quality of int8 activations rests on.
TEST(LinearConformance, Int8ActivationsAreWithinHalfAStepOfTheExactLayer) {
    constexpr std::int64_t kOut = 32;
    constexpr std::int64_t kIn = 512;
    for (const Kernels* kernels : runnable()) {
        for (const tensor::DType dtype : kWeightTypes) {
            if (!tensor::info(dtype).is_quantized) continue;
            const std::vector<std::byte> source = random_weight(dtype, kOut, kIn, 8);
            const std::vector<float> x = random_rows(1, kIn, 9);
            const LinearProbe layer(*kernels, dtype, kOut, kIn, source);
            std::vector<float> exact(kOut);
            std::vector<float> rounded(kOut);
            layer.run(x.data(), 1, exact.data(), {.sum = LinearSum::kF32});
            layer.run(x.data(), 1, rounded.data(), {.sum = LinearSum::kInt8});
            std::vector<float> weights(kOut * kIn);
            kernels->dequantize({dtype, source.data(), kOut, kIn, weights.data()});
            for (std::int64_t c = 0; c < kOut; ++c) {
                double bound = 1e-3;
                for (std::int64_t k = 0; k < kIn; ++k) {
                    float largest = 0;
                    for (std::int64_t i = k / 32 * 32; i < k / 32 * 32 + 32; ++i)
                        largest = std::fmax(largest, std::fabs(x[i]));
                    bound += 0.5001 * largest / 127 * std::fabs(weights[c * kIn + k]);
                }
                EXPECT_LE(std::fabs(exact[c] - rounded[c]), bound)
                    << kernels->name << " " << tensor::info(dtype).name;
            }
        }
    }
}

}  // namespace
}  // namespace pagoda::kernels
