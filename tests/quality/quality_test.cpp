// What int8 activations and bf16 or int8 KV cost in quality, on a real model: settings against the
// f32 oracle over English and code. PAGODA_MODEL names SmolLM2-135M-Instruct in Q4_1.

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/golden/tiny_model.h"
#include "text/tokenizer.h"

namespace pagoda::golden {
namespace {

constexpr double kMaxMeanKl = 0.003;
constexpr double kMinTop1Agreement = 0.97;
constexpr double kMaxPerplexityChange = 0.005;        // default settings against the oracle
constexpr double kMaxOraclePerplexityChange = 0.001;  // the oracle against the reference
constexpr double kMaxInt8KvMeanKl = 0.001;            // all else f32
constexpr double kMaxInt8KvPerplexityChange = 0.003;
constexpr std::int64_t kChunk = 256;

std::string model_path() {
    const char* path = std::getenv("PAGODA_MODEL");
    if (path == nullptr) ADD_FAILURE() << "PAGODA_MODEL is not set";
    return path == nullptr ? "" : path;
}

std::vector<base::TokenId> encode_file(const std::string& name) {
    const char* const suites = std::getenv("PAGODA_SUITES");
    EXPECT_NE(suites, nullptr) << "PAGODA_SUITES must name the folder tests";
    std::ifstream file(std::string(suites) + "/quality/" + name, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    auto checkpoint = formats::open_checkpoint(model_path());
    EXPECT_TRUE(checkpoint.ok());
    auto tokenizer = text::Tokenizer::create(*checkpoint->tokenizer);
    EXPECT_TRUE(tokenizer.ok());
    return std::move((*tokenizer)->encode(text.str(), {})).value();
}

TinyModelOptions settings(bool is_oracle, std::int64_t positions) {
    return {
        .activations = is_oracle ? kernels::ActivationMode::kF32 : kernels::ActivationMode::kAuto,
        .kv = is_oracle ? kernels::KvDType::kF32 : kernels::KvDType::kBF16,
        .threads = 2,
        .max_positions = positions,
        .max_rows = kChunk,
        .poison_kv = false};
}

struct Comparison {
    double kl = 0, oracle_nll = 0, default_nll = 0;
    std::int64_t same_top = 0, rows = 0, scored = 0;
};

// One more row of logits: the distributions' divergence, and the next token's log-probability.
void compare_row(const std::vector<float>& oracle, const std::vector<float>& tested,
                 std::optional<base::TokenId> next, Comparison& sum) {
    const std::vector<double> p = log_softmax(oracle);
    const std::vector<double> q = log_softmax(tested);
    for (std::size_t id = 0; id < p.size(); ++id) sum.kl += std::exp(p[id]) * (p[id] - q[id]);
    const auto best = [](const std::vector<double>& x) {
        return std::max_element(x.begin(), x.end()) - x.begin();
    };
    sum.same_top += best(p) == best(q) ? 1 : 0;
    ++sum.rows;
    if (!next) return;
    sum.oracle_nll -= p[static_cast<std::size_t>(*next)];
    sum.default_nll -= q[static_cast<std::size_t>(*next)];
    ++sum.scored;
}

void compare_text(const std::vector<base::TokenId>& tokens, TinyModelOptions options,
                  Comparison& sum) {
    const auto count = static_cast<std::int64_t>(tokens.size());
    options.max_positions = count;
    TinyModel oracle(model_path(), settings(true, count));
    TinyModel tested(model_path(), options);
    std::vector<std::int32_t> blocks(static_cast<std::size_t>(count / kernels::kBlockTokens + 1));
    std::iota(blocks.begin(), blocks.end(), 0);
    for (std::int64_t at = 0; at < count; at += kChunk) {
        const std::int64_t end = std::min(count, at + kChunk);
        const std::vector<Slice> slices = {{.tokens = {tokens.begin() + at, tokens.begin() + end},
                                            .first_position = at,
                                            .blocks = blocks}};
        const auto expected = oracle.step(slices, true);
        const auto got = tested.step(slices, true);
        for (std::int64_t row = at; row < end; ++row) {
            const auto index = static_cast<std::size_t>(row - at);
            const auto next = row + 1 < count
                                  ? std::optional(tokens[static_cast<std::size_t>(row + 1)])
                                  : std::nullopt;
            compare_row(expected[index], got[index], next, sum);
        }
    }
}

struct Distance {
    double mean_kl = 0, top1_agreement = 0, perplexity_change = 0;
};

// Of settings from the oracle, over all texts.
Distance distance_of(const TinyModelOptions& options) {
    Comparison sum;
    for (const char* name : {"english.txt", "code.txt"}) {
        const std::vector<base::TokenId> tokens = encode_file(name);
        compare_text(tokens, options, sum);
    }
    EXPECT_GE(sum.rows, 2000);
    const auto rows = static_cast<double>(sum.rows);
    const auto scored = static_cast<double>(sum.scored);
    const Distance distance{
        .mean_kl = sum.kl / rows,
        .top1_agreement = static_cast<double>(sum.same_top) / rows,
        .perplexity_change = std::exp((sum.default_nll - sum.oracle_nll) / scored) - 1};
    std::printf("%lld tokens: mean KL %.5f, top-1 agreement %.4f, perplexity %.4f against %.4f\n",
                static_cast<long long>(sum.rows), distance.mean_kl, distance.top1_agreement,
                std::exp(sum.default_nll / scored), std::exp(sum.oracle_nll / scored));
    return distance;
}

void expect_close(const Distance& distance) {
    EXPECT_LE(distance.mean_kl, kMaxMeanKl);
    EXPECT_GT(distance.top1_agreement, kMinTop1Agreement);
    EXPECT_LE(std::abs(distance.perplexity_change), kMaxPerplexityChange);
}

TEST(Quality, DefaultSettingsStayCloseToTheOracle) {
    expect_close(distance_of(settings(false, 0)));
}

TEST(Quality, Int8KvStaysWithinTheBoundsOfTheDefault) {
    TinyModelOptions options = settings(false, 0);
    options.kv = kernels::KvDType::kInt8;
    expect_close(distance_of(options));
}

TEST(Quality, Int8KvAloneCostsLittle) {
    TinyModelOptions options = settings(true, 0);
    options.kv = kernels::KvDType::kInt8;
    const Distance distance = distance_of(options);
    EXPECT_LE(distance.mean_kl, kMaxInt8KvMeanKl);
    EXPECT_LE(std::abs(distance.perplexity_change), kMaxInt8KvPerplexityChange);
}

TEST(Quality, TheOracleHasTheReferencesPerplexity) {
    const base::Json golden = read_json(data_folder() + "/smollm2/golden.json");
    const base::Json* reference = golden.find("perplexity");
    ASSERT_NE(reference, nullptr);
    const std::vector<base::TokenId> tokens = token_ids(*reference->find("ids"));
    const auto& expected = reference->find("values")->as_array();
    TinyModelOptions options = settings(true, static_cast<std::int64_t>(tokens.size()));
    options.max_rows = static_cast<std::int64_t>(tokens.size());
    TinyModel oracle(model_path(), options);
    const std::vector<double> values = oracle.logprobs(tokens);
    ASSERT_EQ(values.size(), expected.size());
    double sum = 0;
    double expected_sum = 0;
    for (std::size_t index = 0; index < values.size(); ++index) {
        EXPECT_NEAR(values[index], expected[index].as_double(), 1e-3) << "token " << index;
        sum += values[index];
        expected_sum += expected[index].as_double();
    }
    const double count = static_cast<double>(values.size());
    EXPECT_LE(std::abs(std::exp((expected_sum - sum) / count) - 1), kMaxOraclePerplexityChange);
}

}  // namespace
}  // namespace pagoda::golden
