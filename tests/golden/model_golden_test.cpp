// Every whole golden GGUF (tests/golden/README.md) and every quantised type, with f32 activations
// against the reference's numbers: logits within 1e-3 of the largest, greedy tokens equal as long
// as the reference's margin is above 0.005.

#include <cmath>

#include <gtest/gtest.h>

#include "tests/golden/tiny_model.h"

namespace pagoda::golden {
namespace {

constexpr double kLogitTolerance = 1e-3;    // of the largest logit
constexpr double kLogprobTolerance = 1e-3;  // of a token's log-probability
constexpr double kDecidedMargin = 0.005;    // between best and second best

struct Case {
    std::string name;
    std::string gguf;  // below the golden folder
};

// The weights are random and the distributions sharp: a log-probability far out in the tail may
// move more than one near the top, in proportion to its size.
double logprob_bound(double reference) {
    return kLogprobTolerance * std::max(1.0, -reference);
}

void expect_logits(const std::vector<float>& logits, const base::Json& reference) {
    const auto& expected = reference.as_array();
    ASSERT_EQ(logits.size(), expected.size());
    double largest = 0;
    double worst = 0;
    for (std::size_t id = 0; id < logits.size(); ++id) {
        largest = std::max(largest, std::abs(expected[id].as_double()));
        worst =
            std::max(worst, std::abs(static_cast<double>(logits[id]) - expected[id].as_double()));
    }
    EXPECT_LE(worst, kLogitTolerance * largest);
}

// Token by token, as decoding does it: each step computes one row over the KV of those before.
void expect_greedy(TinyModel& model, const std::vector<base::TokenId>& ids,
                   std::vector<float> logits, const base::Json& greedy) {
    const std::vector<base::TokenId> expected = token_ids(*greedy.find("ids"));
    const base::Json* steps = greedy.find("steps");
    for (std::size_t index = 0; index < expected.size(); ++index) {
        const auto best = static_cast<base::TokenId>(
            std::max_element(logits.begin(), logits.end()) - logits.begin());
        if (best != expected[index]) {
            const auto& top = steps->as_array()[index].find("top")->as_array();
            const double margin =
                top[0].as_array()[1].as_double() - top[1].as_array()[1].as_double();
            EXPECT_LE(margin, kDecidedMargin) << "token " << index << " is " << best;
            return;
        }
        logits = model.next(best, static_cast<std::int64_t>(ids.size() + index));
    }
}

void expect_prompts(TinyModel& model, const base::Json& prompts) {
    for (const base::Json& prompt : prompts.as_array()) {
        SCOPED_TRACE(prompt.find("name")->as_string());
        const std::vector<base::TokenId> ids = token_ids(*prompt.find("ids"));
        const std::vector<float> logits = model.prompt(ids);
        expect_logits(logits, *prompt.find("logits"));
        expect_greedy(model, ids, logits, *prompt.find("greedy"));
    }
}

class ModelGolden : public testing::TestWithParam<std::string> {};

TEST_P(ModelGolden, LogitsAndGreedyTokensMatchTheReference) {
    const std::string folder = data_folder();
    const base::Json golden = read_json(folder + "/models/" + GetParam() + "/golden.json");
    TinyModel model(folder + "/gguf/" + GetParam() + ".gguf", {});
    expect_prompts(model, *golden.find("prompts"));
}

TEST_P(ModelGolden, LogprobsOfALongPromptMatchTheReference) {
    const std::string folder = data_folder();
    const base::Json golden = read_json(folder + "/models/" + GetParam() + "/golden.json");
    TinyModel model(folder + "/gguf/" + GetParam() + ".gguf", {});
    const base::Json* reference = golden.find("long_logprobs");
    const std::string wanted = reference->find("prompt")->as_string();
    const auto first = static_cast<std::size_t>(reference->find("first_scored_index")->as_int());
    for (const base::Json& prompt : golden.find("prompts")->as_array()) {
        if (prompt.find("name")->as_string() != wanted) continue;
        const std::vector<double> values = model.logprobs(token_ids(*prompt.find("ids")));
        const auto& expected = reference->find("values")->as_array();
        ASSERT_EQ(values.size() + 1 - first, expected.size());
        for (std::size_t index = 0; index < expected.size(); ++index)
            EXPECT_NEAR(values[index + first - 1], expected[index].as_double(),
                        logprob_bound(expected[index].as_double()))
                << "token " << index;
        return;
    }
    FAIL() << "no prompt " << wanted;
}

INSTANTIATE_TEST_SUITE_P(Architectures, ModelGolden,
                         testing::Values("llama", "llama-tied", "mistral-full", "qwen2", "qwen3",
                                         "gemma2", "gemma3"),
                         [](const auto& instance) {
                             std::string name = instance.param;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

class QuantGolden : public testing::TestWithParam<std::string> {};

TEST_P(QuantGolden, LogitsAndGreedyTokensMatchTheDequantisedReference) {
    const std::string folder = data_folder();
    const base::Json golden = read_json(folder + "/gguf-quant/golden.json");
    const base::Json* type = golden.find("types")->find(GetParam());
    ASSERT_NE(type, nullptr);
    TinyModel model(folder + "/gguf-quant/llama-" + GetParam() + ".gguf", {});
    expect_prompts(model, *type->find("prompts"));
}

INSTANTIATE_TEST_SUITE_P(Types, QuantGolden,
                         testing::Values("F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0",
                                         "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS",
                                         "MXFP4"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace pagoda::golden
