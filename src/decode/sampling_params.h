#pragma once
// SamplingParams: how one sequence's tokens are chosen. Plain data; validated before admission, so
// that nothing in a step can refuse it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace pagoda::decode {

inline constexpr int kMaxTopLogprobs = 20;
// Below this a temperature means greedy: the reciprocal would leave one token anyway.
inline constexpr double kGreedyBelowTemperature = 1e-5;
// Beyond these a penalty would decide alone; further out it would leave no finite numbers.
inline constexpr double kMinRepetitionPenalty = 1e-4;
inline constexpr double kMaxRepetitionPenalty = 1e4;

// What a number of SamplingParams may be.
struct NumberRange {
    std::string_view field;
    double low = 0, high = 0;
    // The lowest is no value itself.
    bool is_open_below = false;

    // NaN never is.
    [[nodiscard]] bool contains(double value) const;
    // "at least 0 and at most 100"
    [[nodiscard]] std::string text() const;
};
// By the name of a member below that has a range. REQUIRES: there is one.
[[nodiscard]] const NumberRange& number_range(std::string_view field);
// top_k may be any number from here on.
inline constexpr std::int64_t kMinTopK = -1;

struct SamplingParams {
    double temperature = 1.0;         // [0, 100]; 0 (below 1e-5): greedy
    double top_p = 1.0;               // (0, 1]
    std::int64_t top_k = 0;           // 0 or -1: all
    double min_p = 0.0;               // [0, 1]
    double typical_p = 1.0;           // (0, 1]
    double repetition_penalty = 1.0;  // [1e-4, 1e4]; over prompt and output tokens
    double presence_penalty = 0.0;    // [-2, 2]; over output tokens
    double frequency_penalty = 0.0;   // [-2, 2]; over output tokens
    std::vector<std::pair<base::TokenId, double>> logit_bias;  // [-100, 100] each
    std::uint64_t seed = 0;       // choice k of a request uses seed + k
    std::int64_t min_tokens = 0;  // no end token before that many output tokens
    std::int64_t max_tokens = 0;  // output tokens, at most; >= 1
    bool ignore_eos = false;
    std::vector<base::TokenId> stop_token_ids;
    std::optional<int> logprobs;  // of output tokens: how many alternatives, 0..kMaxTopLogprobs
    std::optional<int> prompt_logprobs;  // the same of prompt tokens
};

// For a request that names none.
[[nodiscard]] std::uint64_t random_seed();

// Errors name field, value and limit. end_tokens: the model's; with the request's they must leave
// something to choose while min_tokens holds them back.
[[nodiscard]] base::Status validate(const SamplingParams& params, std::int64_t vocab_size,
                                    std::span<const base::TokenId> end_tokens = {});

}  // namespace pagoda::decode
