// Rope scalings that no golden file has, in whole models at positions far beyond the original
// context. A file can also name a divisor for each frequency, which the golden llama does and the
// reference confirms: the same model with the divisors of a scaling's formula must give its logits.

#include <array>
#include <cmath>
#include <numbers>
#include <random>

#include <gtest/gtest.h>

#include "tests/golden/tiny_model.h"

namespace pagoda::golden {
namespace {

using formats::Checkpoint;
using formats::MetaValue;
using Logits = std::vector<std::vector<float>>;

constexpr double kBase = 10000;  // of the file, as its rotary dimensions are
constexpr std::size_t kPairs = 16;
constexpr std::int64_t kPositions = 1500;
constexpr std::int64_t kOriginalContext = 512;
constexpr double kFactor = 8;

using Divisors = std::array<float, kPairs>;

void set(Checkpoint& checkpoint, const std::string& key, MetaValue value) {
    for (auto& [name, old] : checkpoint.metadata) {
        if (name != "llama." + key) continue;
        old = std::move(value);
        return;
    }
    checkpoint.metadata.emplace_back("llama." + key, std::move(value));
}

void set_divisors(Checkpoint& checkpoint, const Divisors& divisors) {
    formats::CheckpointTensor tensor = *checkpoint.find_tensor("output_norm.weight");
    tensor.name = "rope_freqs.weight";
    tensor.view.shape = {static_cast<std::int64_t>(kPairs)};
    tensor.view.data = reinterpret_cast<const std::byte*>(divisors.data());
    tensor.view.bytes = sizeof divisors;
    checkpoint.tensors.push_back(tensor);
    checkpoint.index_tensors();
}

// The last logits of every 100th position.
Logits logits_of(const std::function<void(Checkpoint&)>& alter) {
    TinyModel model(
        data_folder() + "/gguf/llama-tied.gguf",
        {.max_positions = kPositions, .max_rows = kPositions, .alter = [&](Checkpoint& checkpoint) {
             set(checkpoint, "context_length", kPositions);
             alter(checkpoint);
         }});
    std::mt19937 random(17);
    std::vector<base::TokenId> tokens(static_cast<std::size_t>(kPositions));
    for (base::TokenId& token : tokens) token = static_cast<base::TokenId>(random() % 500);
    Logits logits = {model.prompt({tokens.begin(), tokens.begin() + 100})};
    std::vector<std::int32_t> blocks((kPositions + kernels::kBlockTokens - 1) /
                                     kernels::kBlockTokens);
    for (std::size_t block = 0; block < blocks.size(); ++block)
        blocks[block] = static_cast<std::int32_t>(block);
    for (std::int64_t at = 100; at < kPositions; at += 100)
        logits.push_back(model
                             .step({{.tokens = {tokens.begin() + at, tokens.begin() + at + 100},
                                     .first_position = at,
                                     .blocks = blocks}},
                                   false)
                             .front());
    return logits;
}

// The largest difference of the logits at a position, of the largest logit there.
double difference_at(const Logits& a, const Logits& b, std::size_t index) {
    double worst = 0;
    double largest = 0;
    for (std::size_t id = 0; id < a[index].size(); ++id) {
        worst = std::max(
            worst, std::abs(static_cast<double>(a[index][id]) - static_cast<double>(b[index][id])));
        largest = std::max(largest, std::abs(static_cast<double>(b[index][id])));
    }
    return worst / largest;
}

// `scaled` is the model of the formula at all positions, and is not the unscaled one.
void expect_scaled_as(const Logits& scaled, const Logits& formula) {
    const Logits plain = logits_of([](Checkpoint&) {});
    for (std::size_t index = 0; index < scaled.size(); ++index) {
        EXPECT_LT(difference_at(scaled, formula, index), 1e-4) << "position " << index * 100 + 99;
        EXPECT_GT(difference_at(scaled, plain, index), 0.02) << "position " << index * 100 + 99;
    }
}

TEST(RopeScaling, LinearDividesEveryFrequencyAtAllPositions) {
    const Logits scaled = logits_of([](Checkpoint& checkpoint) {
        set(checkpoint, "rope.scaling.type", std::string("linear"));
        set(checkpoint, "rope.scaling.factor", kFactor);
    });
    Divisors divisors;
    divisors.fill(static_cast<float>(kFactor));
    expect_scaled_as(
        scaled, logits_of([&](Checkpoint& checkpoint) { set_divisors(checkpoint, divisors); }));
}

// Where each pair lies between its original frequency (0) and the interpolated one (1):
// arXiv:2309.00071, section 3.2, with 32 and 1 rotations.
double interpolation(std::size_t pair) {
    const auto pair_of = [](double rotations) {
        return 2.0 * kPairs * std::log(kOriginalContext / (rotations * 2 * std::numbers::pi)) /
               (2 * std::log(kBase));
    };
    const double low = std::max(std::floor(pair_of(32)), 0.0);
    const double high = std::ceil(pair_of(1));
    return std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
}

TEST(RopeScaling, YarnInterpolatesByTheTurnsOfEachPairAndSharpensAtAllPositions) {
    const Logits scaled = logits_of([](Checkpoint& checkpoint) {
        set(checkpoint, "rope.scaling.type", std::string("yarn"));
        set(checkpoint, "rope.scaling.factor", kFactor);
        set(checkpoint, "rope.scaling.original_context_length", kOriginalContext);
    });
    Divisors divisors;
    for (std::size_t pair = 0; pair < kPairs; ++pair) {
        const double share = interpolation(pair);
        divisors[pair] = static_cast<float>(1 / (share / kFactor + 1 - share));
    }
    EXPECT_EQ(divisors.front(), 1);
    EXPECT_EQ(divisors.back(), static_cast<float>(kFactor));
    expect_scaled_as(scaled, logits_of([&](Checkpoint& checkpoint) {
                         set_divisors(checkpoint, divisors);
                         set(checkpoint, "rope.scaling.attn_factor", 1 + 0.1 * std::log(kFactor));
                     }));
}

}  // namespace
}  // namespace pagoda::golden
