#include "decode/candidates.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

namespace pagoda::decode {
namespace {

std::vector<std::size_t> sorted_positions(const std::vector<float>& values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
    return order;
}

std::vector<base::TokenId> tokens_of(const Candidates& candidates) {
    std::vector<base::TokenId> tokens;
    for (std::size_t i = 0; i < candidates.size(); ++i) tokens.push_back(candidates.token(i));
    return tokens;
}

std::vector<base::TokenId> ascending(const std::vector<std::size_t>& order, std::size_t count) {
    std::vector<base::TokenId> tokens;
    for (std::size_t i = 0; i < count; ++i) tokens.push_back(static_cast<base::TokenId>(order[i]));
    std::sort(tokens.begin(), tokens.end());
    return tokens;
}

TEST(Candidates, RanksKeepTheOrderOfFloatsOfEitherSign) {
    const std::vector<float> values{-1e30F, -2, -0.5F, -0.0F, 0.0F, 1e-30F, 0.5F, 2, 1e30F};
    const std::vector<std::uint32_t> ranks = ranks_descending(values);
    EXPECT_EQ(ranks[3], ranks[4]);  // the two zeros are equal
    for (std::size_t i = 1; i < values.size(); ++i) {
        if (i == 4) continue;
        EXPECT_LT(ranks[i], ranks[i - 1]) << i;
    }
}

TEST(Candidates, CutsAgreeWithAFullStableSort) {
    std::mt19937 random(11);
    for (int round = 0; round < 200; ++round) {
        const std::size_t size = 1 + random() % 400;
        std::vector<float> weights(size);
        // Few distinct values, so that ties are common.
        for (float& weight : weights) weight = static_cast<float>(random() % 17) / 16.0F;
        weights[random() % size] = 1.0F;
        const std::vector<std::size_t> order = sorted_positions(weights);
        const std::vector<std::uint32_t> ranks = ranks_descending(weights);

        const std::size_t count = 1 + random() % size;
        std::vector<float> copy = weights;
        Candidates by_count(copy);
        by_count.keep_up_to(ranks, cut_by_count(ranks, count));
        EXPECT_EQ(tokens_of(by_count), ascending(order, count));

        // Sixteenths add without rounding, so the reference is exact.
        const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
        const double mass = total * static_cast<double>(random() % 65) / 64;
        std::size_t needed = 0;
        for (double sum = 0; needed < size && (needed == 0 || sum < mass);) {
            sum += static_cast<double>(weights[order[needed++]]);
        }
        copy = weights;
        Candidates by_mass(copy);
        by_mass.keep_up_to(ranks, cut_by_mass(ranks, weights, mass));
        EXPECT_EQ(tokens_of(by_mass), ascending(order, needed));
    }
}

TEST(Candidates, MassThatIsNeverReachedKeepsEverything) {
    std::vector<float> weights{0.25F, 0.5F, 0.25F};
    const std::vector<std::uint32_t> ranks = ranks_descending(weights);
    Candidates candidates(weights);
    candidates.keep_up_to(ranks, cut_by_mass(ranks, weights, 1.5));
    EXPECT_EQ(candidates.size(), 3U);
}

TEST(Candidates, FiltersComposeAndTokensStayInOrder) {
    std::vector<float> values{5, 1, 4, 2, 3, 0};
    Candidates candidates(values);
    candidates.keep_at_least(2.0F);
    EXPECT_EQ(tokens_of(candidates), (std::vector<base::TokenId>{0, 2, 3, 4}));
    candidates.keep_at_least(3.0F);
    EXPECT_EQ(tokens_of(candidates), (std::vector<base::TokenId>{0, 2, 4}));
    EXPECT_EQ(candidates.values()[2], 3.0F);
}

}  // namespace
}  // namespace pagoda::decode
