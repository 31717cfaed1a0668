// Every weight type on the kernels of PAGODA_ISA, with the default settings (activations rounded to
// int8, bf16 KV): no number of rows and sequences in a step gives a logit that is not finite or has
// other bits than in any other, and the logits are those of the scalar reference within a bound.

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "kernels/registry.h"
#include "tests/golden/tiny_model.h"

namespace pagoda::golden {
namespace {

using Logits = std::vector<std::vector<float>>;

constexpr std::size_t kRows = 512;
constexpr std::size_t kMaxSequences = 4;
constexpr auto kBlocksOfOne =
    static_cast<std::int32_t>(kRows) / static_cast<std::int32_t>(kernels::kBlockTokens);

// Around every width that a kernel cuts rows by, with 1, 2 and 4 sequences, and a few large ones.
constexpr std::size_t kBatchRows[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  12, 15, 16, 17,
                                      24, 31, 32, 33, 47, 48, 49, 63, 64, 65, 96, 97, 129};
constexpr std::pair<std::size_t, std::size_t> kLargeBatches[] = {
    {255, 2}, {256, 4}, {257, 1}, {511, 2}, {512, 4}};

// Of two variants with f32 activations: different orders of summation alone.
constexpr double kF32Tolerance = 1e-4;
// Of two variants with rounded activations, as a share of what rounding itself costs: where a sum
// in another order moves a value across the middle between two steps of its scale, it moves by one.
constexpr double kShareOfRounding = 0.5;
// A variant that multiplies BF16 weights in bf16 rounds activations that the reference does not.
constexpr double kShareWithBf16 = 3;

TinyModelOptions options(const kernels::Kernels* variant,
                         kernels::ActivationMode activations = kernels::ActivationMode::kAuto) {
    const bool is_f32 = activations == kernels::ActivationMode::kF32;
    return {.activations = activations,
            .kv = is_f32 ? kernels::KvDType::kF32 : kernels::KvDType::kBF16,
            .max_positions = kRows,
            .max_rows = kRows,
            .spare_blocks = kBlocksOfOne * static_cast<std::int32_t>(kMaxSequences - 1),
            .variant = variant};
}

std::vector<base::TokenId> random_tokens(std::size_t count) {
    std::mt19937 random(11);
    std::vector<base::TokenId> tokens(count);
    for (base::TokenId& token : tokens) token = static_cast<base::TokenId>(random() % 500);
    return tokens;
}

// The first num_rows rows of a batch of num_sequences sequences, which all begin as `tokens` does.
std::vector<Slice> batch_of(const std::vector<base::TokenId>& tokens, std::size_t num_rows,
                            std::size_t num_sequences) {
    std::vector<Slice> slices;
    for (std::size_t number = 0; number < num_sequences; ++number) {
        const std::size_t length =
            num_rows * (number + 1) / num_sequences - num_rows * number / num_sequences;
        Slice slice{
            .tokens = {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(length)}};
        slice.blocks.resize(static_cast<std::size_t>(kBlocksOfOne));
        std::iota(slice.blocks.begin(), slice.blocks.end(),
                  kBlocksOfOne * static_cast<std::int32_t>(number));
        slices.push_back(std::move(slice));
    }
    return slices;
}

bool all_finite(const std::vector<float>& row) {
    return std::all_of(row.begin(), row.end(), [](float logit) { return std::isfinite(logit); });
}

bool has_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The root of the mean squared difference of two runs' logits, of that of the second's logits.
double relative_difference(const Logits& a, const Logits& b) {
    double difference = 0;
    double size = 0;
    for (std::size_t row = 0; row < a.size(); ++row) {
        for (std::size_t id = 0; id < a[row].size(); ++id) {
            const double theirs = b[row][id];
            difference += std::pow(static_cast<double>(a[row][id]) - theirs, 2);
            size += theirs * theirs;
        }
    }
    return std::sqrt(difference / size);
}

// The reference computes row by row and is slow: small batches do.
std::size_t most_rows() {
    return chosen_kernels()->parent == nullptr ? 9 : kRows;
}

// Rows and sequences.
std::vector<std::pair<std::size_t, std::size_t>> batches() {
    std::vector<std::pair<std::size_t, std::size_t>> result;
    for (const std::size_t num_rows : kBatchRows)
        for (const std::size_t num_sequences : {1U, 2U, 4U})
            if (num_rows >= num_sequences && num_rows <= most_rows())
                result.emplace_back(num_rows, num_sequences);
    for (const auto& batch : kLargeBatches)
        if (batch.first <= most_rows()) result.push_back(batch);
    return result;
}

class WeightFile : public testing::TestWithParam<std::string> {
  protected:
    static std::string path() { return data_folder() + "/" + GetParam() + ".gguf"; }
    static double share_of_rounding() {
        const bool holds_bf16 = GetParam().starts_with("gguf/") || GetParam().ends_with("BF16");
        return holds_bf16 && chosen_kernels()->multiplies_bf16 ? kShareWithBf16 : kShareOfRounding;
    }
};

// Every row of the batch is finite and has the bits of the same row of `whole`, a sequence alone.
void expect_rows_of(TinyModel& model, const std::vector<Slice>& slices, const Logits& whole) {
    const Logits rows = model.step(slices, true);
    std::size_t at = 0;
    for (const Slice& slice : slices) {
        for (std::size_t row = 0; row < slice.tokens.size(); ++row, ++at) {
            ASSERT_TRUE(all_finite(rows[at])) << "row " << at;
            ASSERT_TRUE(has_same_bits(rows[at], whole[row])) << "row " << at;
        }
    }
    ASSERT_EQ(rows.size(), at);
}

TEST_P(WeightFile, NoBatchSizeGivesLogitsThatAreNotFiniteOrHaveOtherBits) {
    TinyModel model(path(), options(nullptr));
    const std::vector<base::TokenId> tokens = random_tokens(kRows);
    const Logits whole = model.step(batch_of(tokens, most_rows(), 1), true);
    for (const auto& [num_rows, num_sequences] : batches()) {
        SCOPED_TRACE(std::to_string(num_rows) + " rows, " + std::to_string(num_sequences));
        ASSERT_NO_FATAL_FAILURE(
            expect_rows_of(model, batch_of(tokens, num_rows, num_sequences), whole));
    }
}

TEST_P(WeightFile, LogitsAreThoseOfTheScalarReferenceWithinABound) {
    const std::vector<base::TokenId> tokens = random_tokens(200);
    const auto rows_of = [&](const kernels::Kernels* variant, kernels::ActivationMode mode) {
        TinyModel model(path(), options(variant, mode));
        return model.step(batch_of(tokens, tokens.size(), 1), true);
    };
    const auto ref = kernels::choose_variant("ref", kernels::detect_cpu_features());
    ASSERT_TRUE(ref.ok());
    const Logits exact = rows_of(*ref, kernels::ActivationMode::kF32);
    const Logits rounded = rows_of(*ref, kernels::ActivationMode::kAuto);
    const Logits ours = rows_of(nullptr, kernels::ActivationMode::kAuto);
    const double by_rounding = relative_difference(rounded, exact);
    const double by_variant = relative_difference(ours, rounded);
    RecordProperty("by_rounding", std::to_string(by_rounding));
    RecordProperty("by_variant", std::to_string(by_variant));
    const double f32 = relative_difference(rows_of(nullptr, kernels::ActivationMode::kF32), exact);
    RecordProperty("f32", std::to_string(f32));
    EXPECT_LE(by_variant, share_of_rounding() * by_rounding);
    EXPECT_LE(f32, kF32Tolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Files, WeightFile,
    testing::Values("gguf-quant/llama-F16", "gguf-quant/llama-BF16", "gguf-quant/llama-Q4_0",
                    "gguf-quant/llama-Q4_1", "gguf-quant/llama-Q5_0", "gguf-quant/llama-Q5_1",
                    "gguf-quant/llama-Q8_0", "gguf-quant/llama-Q2_K", "gguf-quant/llama-Q3_K",
                    "gguf-quant/llama-Q4_K", "gguf-quant/llama-Q5_K", "gguf-quant/llama-Q6_K",
                    "gguf-quant/llama-IQ4_NL", "gguf-quant/llama-IQ4_XS", "gguf-quant/llama-MXFP4",
                    "gguf/llama", "gguf/gemma2", "gguf/gemma3", "gguf/qwen3"),
    [](const auto& instance) {
        std::string name = instance.param.substr(instance.param.rfind('/') + 1);
        std::replace(name.begin(), name.end(), '-', '_');
        return name;
    });

}  // namespace
}  // namespace pagoda::golden
