#include "decode/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace pagoda::decode {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

SamplingParams greedy() {
    SamplingParams params;
    params.temperature = 0;
    params.max_tokens = 100;
    return params;
}

SamplingParams seeded(std::uint64_t seed) {
    SamplingParams params;
    params.seed = seed;
    params.max_tokens = 100;
    return params;
}

Sampler make_sampler(const SamplingParams& params, std::size_t vocab_size,
                     std::vector<base::TokenId> prompt = {},
                     const std::vector<base::TokenId>& end_tokens = {}) {
    return Sampler(
        std::make_shared<const SamplingParams>(params), params.seed, prompt,
        std::make_shared<const std::vector<base::TokenId>>(held_back_tokens(params, end_tokens)),
        static_cast<std::int64_t>(vocab_size));
}

SampledToken sample(const Sampler& sampler, const std::vector<float>& logits,
                    std::int64_t position = 0) {
    std::vector<float> scratch(logits.size());
    return sampler.sample(logits, position, scratch);
}

base::TokenId token_of(const SamplingParams& params, const std::vector<float>& logits,
                       std::int64_t position = 0) {
    return sample(make_sampler(params, logits.size()), logits, position).token;
}

// The tokens that some of many draws gives.
std::set<base::TokenId> support(const SamplingParams& params, const std::vector<float>& logits,
                                std::int64_t draws = 2000) {
    const Sampler sampler = make_sampler(params, logits.size());
    std::set<base::TokenId> tokens;
    for (std::int64_t position = 0; position < draws; ++position) {
        tokens.insert(sample(sampler, logits, position).token);
    }
    return tokens;
}

// Logits whose softmax is the given distribution.
std::vector<float> logits_of(const std::vector<double>& probabilities) {
    std::vector<float> logits;
    logits.reserve(probabilities.size());
    for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
    return logits;
}

std::vector<float> random_logits(std::size_t size, unsigned seed, float spread = 3) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, spread);
    std::vector<float> logits(size);
    for (float& logit : logits) logit = normal(random);
    return logits;
}

TEST(Sampler, GreedyTakesTheLargestAndTiesGoToTheLowerId) {
    EXPECT_EQ(token_of(greedy(), {0, 3, 1, 3, 2}), 1);
    EXPECT_EQ(token_of(greedy(), {-5, -kInfinity, -4}), 2);
    SamplingParams nearly_zero = greedy();
    nearly_zero.temperature = 1e-9;
    EXPECT_EQ(token_of(nearly_zero, {0, 3, 1, 3, 2}), 1);
}

TEST(Sampler, NanAndInfiniteLogitsAreReportedNotSampled) {
    for (const SamplingParams& params : {greedy(), seeded(1)}) {
        const Sampler sampler = make_sampler(params, 3);
        EXPECT_EQ(sample(sampler, {0, kNan, 1}).fault, SamplingFault::kNotFinite);
        EXPECT_EQ(sample(sampler, {0, kInfinity, 1}).fault, SamplingFault::kNotFinite);
        EXPECT_EQ(sample(sampler, {-kInfinity, -kInfinity, -kInfinity}).fault,
                  SamplingFault::kNotFinite);
        EXPECT_FALSE(sample(sampler, {0, -kInfinity, 1}).fault);
    }
}

TEST(Sampler, ExtremePenaltiesLeaveNumbersAndNoTokenLeftHasANameOfItsOwn) {
    SamplingParams params = greedy();
    params.repetition_penalty = kMinRepetitionPenalty;
    Sampler extreme = make_sampler(params, 3);
    extreme.accept(1);
    EXPECT_FALSE(sample(extreme, {0, 3e38F, 1}).fault);
    EXPECT_EQ(sample(extreme, {0, 3e38F, 1}).token, 1);
    SamplingParams nothing = greedy();
    nothing.min_tokens = 1;
    nothing.stop_token_ids = {0, 1, 2};
    EXPECT_EQ(sample(make_sampler(nothing, 3), {0, 1, 2}).fault, SamplingFault::kNoToken);
}

TEST(Sampler, DrawsFollowTheDistribution) {
    const std::vector<double> probabilities{0.5, 0.25, 0.15, 0.1};
    const Sampler sampler = make_sampler(seeded(3), 4);
    const std::vector<float> logits = logits_of(probabilities);
    std::map<base::TokenId, int> counts;
    constexpr int kDraws = 40000;
    for (int i = 0; i < kDraws; ++i) ++counts[sample(sampler, logits, i).token];
    for (std::size_t i = 0; i < probabilities.size(); ++i) {
        EXPECT_NEAR(static_cast<double>(counts[static_cast<base::TokenId>(i)]) / kDraws,
                    probabilities[i], 0.01);
    }
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
    const std::vector<float> logits{0, 1};
    const auto share_of_one = [&](double temperature) {
        SamplingParams params = seeded(5);
        params.temperature = temperature;
        const Sampler sampler = make_sampler(params, 2);
        int ones = 0;
        for (int i = 0; i < 20000; ++i) ones += sample(sampler, logits, i).token;
        return ones / 20000.0;
    };
    for (const double temperature : {0.25, 1.0, 4.0}) {
        EXPECT_NEAR(share_of_one(temperature), 1 / (1 + std::exp(-1 / temperature)), 0.015);
    }
}

TEST(Sampler, SeedAndPositionAloneDecide) {
    const std::vector<float> logits = random_logits(1000, 2);
    const Sampler first = make_sampler(seeded(42), logits.size());
    const Sampler second = make_sampler(seeded(42), logits.size());
    std::set<base::TokenId> by_seed;
    for (std::int64_t position = 20; position-- > 0;) {
        EXPECT_EQ(sample(first, logits, position).token, sample(second, logits, position).token);
    }
    for (std::uint64_t seed = 0; seed < 5; ++seed)
        by_seed.insert(token_of(seeded(seed), logits, 9));
    EXPECT_GT(by_seed.size(), 1U);
}

TEST(Sampler, TopKKeepsTheBestKAndTiesGoToTheLowerId) {
    SamplingParams params = seeded(1);
    params.temperature = 50;  // nearly flat, so that all of the support shows
    params.top_k = 3;
    EXPECT_EQ(support(params, {1, 7, 5, 5, 5, 0}), (std::set<base::TokenId>{1, 2, 3}));
    params.top_k = 1;
    EXPECT_EQ(support(params, {1, 7, 7, 5}), (std::set<base::TokenId>{1}));
    for (const std::int64_t all : {-1, 0, 4, 100}) {
        params.top_k = all;
        EXPECT_EQ(support(params, {1, 7, 7, 5}).size(), 4U) << all;
    }
}

TEST(Sampler, TopKOverALargeVocabularyIsExact) {
    const std::vector<float> logits = random_logits(5000, 4);
    std::vector<std::size_t> order(logits.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return logits[a] > logits[b]; });
    SamplingParams params = seeded(1);
    params.temperature = 90;
    params.top_k = 12;
    std::set<base::TokenId> expected;
    for (std::size_t i = 0; i < 12; ++i) expected.insert(static_cast<base::TokenId>(order[i]));
    EXPECT_EQ(support(params, logits, 200), expected);
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesTheMass) {
    const std::vector<float> logits = logits_of({0.1, 0.4, 0.2, 0.3});
    SamplingParams params = seeded(1);
    params.top_p = 0.4 - 1e-4;
    EXPECT_EQ(support(params, logits), (std::set<base::TokenId>{1}));
    params.top_p = 0.4 + 1e-4;
    EXPECT_EQ(support(params, logits), (std::set<base::TokenId>{1, 3}));
    params.top_p = 0.89;
    EXPECT_EQ(support(params, logits), (std::set<base::TokenId>{1, 2, 3}));
    params.top_p = 0.91;
    EXPECT_EQ(support(params, logits).size(), 4U);
    params.top_p = 1e-12;
    EXPECT_EQ(support(params, logits), (std::set<base::TokenId>{1}));
}

TEST(Sampler, MinPIsRelativeToTheMostLikely) {
    const std::vector<float> logits = logits_of({0.5, 0.3, 0.11, 0.09});
    SamplingParams params = seeded(1);
    params.min_p = 0.2;  // bound 0.1
    EXPECT_EQ(support(params, logits), (std::set<base::TokenId>{0, 1, 2}));
    params.min_p = 1.0;
    EXPECT_EQ(support(params, logits), (std::set<base::TokenId>{0}));
}

TEST(Sampler, TypicalPKeepsWhatIsNearestToTheEntropy) {
    // Entropy 1.38 nats; -log p is 0.69, 1.20, 1.90, 2.30, 3.00: token 1 is nearest, then 2, then
    // 0.
    const std::vector<float> logits = logits_of({0.5, 0.3, 0.15 - 0.03, 0.05, 0.03});
    SamplingParams params = seeded(1);
    params.typical_p = 0.29;
    EXPECT_EQ(support(params, logits), (std::set<base::TokenId>{1}));
    params.typical_p = 0.31;
    EXPECT_EQ(support(params, logits), (std::set<base::TokenId>{0, 1}));
    params.typical_p = 0.81;
    EXPECT_EQ(support(params, logits), (std::set<base::TokenId>{0, 1, 2}));
}

TEST(Sampler, FiltersComposeInTheDocumentedOrder) {
    // top_k 2 leaves 0.5 and 0.3, renormalised 0.625 and 0.375: top_p 0.6 then keeps one, while
    // top_p over the whole distribution would have kept both.
    SamplingParams params = seeded(1);
    params.top_k = 2;
    params.top_p = 0.6;
    EXPECT_EQ(support(params, logits_of({0.5, 0.3, 0.2})), (std::set<base::TokenId>{0}));
    // Temperature comes before top_p: at 4 the distribution is flat enough for all three.
    params.top_k = 0;
    params.temperature = 4;
    params.top_p = 0.75;
    EXPECT_EQ(support(params, logits_of({0.76, 0.14, 0.1})).size(), 3U);
}

TEST(Sampler, EveryFilterAtOnceNeverRunsOutOfTokens) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        SamplingParams params = seeded(seed);
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> unit(1e-6, 1.0);
        params.temperature = unit(random) * 3;
        params.top_k = random() % 50;
        params.top_p = unit(random);
        params.typical_p = unit(random);
        params.min_p = unit(random);
        const std::vector<float> logits = random_logits(1 + random() % 3000, seed, 8);
        const SampledToken token = sample(make_sampler(params, logits.size()), logits, seed);
        EXPECT_FALSE(token.fault);
        EXPECT_GE(token.token, 0);
        EXPECT_LT(static_cast<std::size_t>(token.token), logits.size());
    }
}

TEST(Sampler, LogitBiasMovesAndForbids) {
    SamplingParams params = greedy();
    params.logit_bias = {{2, 100.0}};
    EXPECT_EQ(token_of(params, {5, 4, -20}), 2);
    params.logit_bias = {{0, -100.0}};
    EXPECT_EQ(token_of(params, {5, 4, -20}), 1);
}

TEST(Sampler, PresenceAndFrequencyPenaltiesCountOutputTokensOnly) {
    const std::vector<float> logits{3, 2, 0};
    SamplingParams params = greedy();
    params.presence_penalty = 2;
    Sampler presence = make_sampler(params, 3, std::vector<base::TokenId>(50, 0));
    EXPECT_EQ(sample(presence, logits).token, 0);  // the prompt's fifty do not count
    presence.accept(0);
    EXPECT_EQ(sample(presence, logits).token, 1);

    params = greedy();
    params.frequency_penalty = 0.6;
    Sampler frequency = make_sampler(params, 3);
    frequency.accept(0);
    EXPECT_EQ(sample(frequency, logits).token, 0);  // 3 - 0.6
    frequency.accept(0);
    EXPECT_EQ(sample(frequency, logits).token, 1);  // 3 - 1.2
}

TEST(Sampler, RepetitionPenaltyCountsPromptAndOutputAndWorksOnBothSigns) {
    SamplingParams params = greedy();
    params.repetition_penalty = 2;
    Sampler sampler = make_sampler(params, 3, {0});
    EXPECT_EQ(sample(sampler, {3, 2, -9}).token, 1);  // 3 / 2
    sampler.accept(1);
    EXPECT_EQ(sample(sampler, {3, 2.5F, 1.4F}).token, 0);     // 1.5, 1.25, 1.4
    EXPECT_EQ(sample(sampler, {-1, -1.5F, -1.9F}).token, 2);  // -2, -3, -1.9
}

TEST(Sampler, NoEndTokenBeforeMinTokens) {
    SamplingParams params = greedy();
    params.min_tokens = 2;
    params.stop_token_ids = {1};
    Sampler sampler = make_sampler(params, 4, {}, {3});
    const std::vector<float> logits{1, 8, 2, 9};
    EXPECT_EQ(sample(sampler, logits).token, 2);
    sampler.accept(2);
    EXPECT_EQ(sample(sampler, logits).token, 2);
    sampler.accept(2);
    EXPECT_EQ(sample(sampler, logits).token, 3);
}

TEST(Sampler, LogprobsAreOfTheRawDistribution) {
    SamplingParams params = greedy();
    params.logit_bias = {{2, 100.0}};
    params.logprobs = 2;
    const std::vector<double> probabilities{0.5, 0.3, 0.15, 0.05};
    const SampledToken token = sample(make_sampler(params, 4), logits_of(probabilities));
    ASSERT_TRUE(token.logprob.has_value());
    EXPECT_EQ(token.token, 2);
    EXPECT_NEAR(token.logprob->logprob, std::log(0.15), 1e-5);
    EXPECT_EQ(token.logprob->rank, 3);
    ASSERT_EQ(token.logprob->top.size(), 2U);
    EXPECT_EQ(token.logprob->top[0].token, 0);
    EXPECT_NEAR(token.logprob->top[0].logprob, std::log(0.5), 1e-5);
    EXPECT_EQ(token.logprob->top[1].token, 1);
}

TEST(TokenLogprob, RankAndAlternativesAgreeOnTies) {
    const std::vector<float> logits{1, 2, 2, 1, 2};
    const TokenLogprob logprob = token_logprob(logits, 2, 5).value();
    EXPECT_EQ(logprob.rank, 2);
    ASSERT_EQ(logprob.top.size(), 5U);
    std::vector<base::TokenId> order;
    order.reserve(logprob.top.size());
    for (const Alternative& alternative : logprob.top) order.push_back(alternative.token);
    EXPECT_EQ(order, (std::vector<base::TokenId>{1, 2, 4, 0, 3}));
    EXPECT_TRUE(token_logprob(logits, 0, 0)->top.empty());
    EXPECT_EQ(token_logprob(logits, 0, 20)->top.size(), logits.size());
}

TEST(TokenLogprob, RowsThatAreNotNumbersHaveNone) {
    const std::vector<float> logits{1, kNan, 2};
    EXPECT_FALSE(token_logprob(logits, 0, 2));
    EXPECT_FALSE(token_logprob(logits, 1, 0));
    EXPECT_FALSE(token_logprob(std::vector<float>{1, kInfinity}, 0, 0));
    EXPECT_TRUE(token_logprob(std::vector<float>{1, -kInfinity}, 1, 2));
}

TEST(TokenLogprob, ProbabilitiesSumToOneAtLargeVocabularies) {
    const std::vector<float> logits = random_logits(50000, 8);
    double sum = 0;
    for (std::size_t i = 0; i < logits.size(); i += 5000) {
        const auto token = static_cast<base::TokenId>(i);
        double exact = 0;
        for (const float logit : logits)
            exact += std::exp(static_cast<double>(logit) - static_cast<double>(logits[i]));
        sum += static_cast<double>(token_logprob(logits, token, 0)->logprob) + std::log(exact);
    }
    EXPECT_NEAR(sum, 0, 1e-4);
}

}  // namespace
}  // namespace pagoda::decode
