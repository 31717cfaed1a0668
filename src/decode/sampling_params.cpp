#include "decode/sampling_params.h"

#include <algorithm>
#include <array>
#include <random>
#include <unordered_set>

#include <fmt/core.h>

#include "base/check.h"

namespace pagoda::decode {

namespace {

using base::Error;
using base::invalid;

constexpr auto kRanges = std::to_array<NumberRange>({
    {"temperature", 0, 100},
    {"top_p", 0, 1, /*is_open_below=*/true},
    {"min_p", 0, 1},
    {"typical_p", 0, 1, /*is_open_below=*/true},
    {"repetition_penalty", kMinRepetitionPenalty, kMaxRepetitionPenalty},
    {"presence_penalty", -2, 2},
    {"frequency_penalty", -2, 2},
});

std::optional<Error> check_numbers(const SamplingParams& params) {
    const std::pair<std::string_view, double> values[] = {
        {"temperature", params.temperature},
        {"top_p", params.top_p},
        {"min_p", params.min_p},
        {"typical_p", params.typical_p},
        {"repetition_penalty", params.repetition_penalty},
        {"presence_penalty", params.presence_penalty},
        {"frequency_penalty", params.frequency_penalty},
    };
    for (const auto& [field, value] : values) {
        const NumberRange& range = number_range(field);
        if (!range.contains(value))
            return invalid(fmt::format("{} must be {}, got {}", field, range.text(), value),
                           std::string(field));
    }
    return std::nullopt;
}

std::optional<Error> check_counts(const SamplingParams& params) {
    if (params.top_k < kMinTopK) {
        return invalid(
            fmt::format("top_k must be -1 or 0 (all tokens) or at least 1, got {}", params.top_k),
            "top_k");
    }
    if (params.max_tokens < 1) {
        return invalid(fmt::format("max_tokens must be at least 1, got {}", params.max_tokens),
                       "max_tokens");
    }
    if (params.min_tokens < 0 || params.min_tokens > params.max_tokens) {
        return invalid(fmt::format("min_tokens must be at least 0 and at most max_tokens ({}), "
                                   "got {}",
                                   params.max_tokens, params.min_tokens),
                       "min_tokens");
    }
    return std::nullopt;
}

std::optional<Error> check_logprobs(const char* field, std::optional<int> count) {
    if (!count || (*count >= 0 && *count <= kMaxTopLogprobs)) return std::nullopt;
    return invalid(
        fmt::format("{} must be between 0 and {}, got {}", field, kMaxTopLogprobs, *count), field);
}

std::optional<Error> check_bias(const SamplingParams& params, std::int64_t vocab_size) {
    std::unordered_set<base::TokenId> seen;
    for (const auto& [token, bias] : params.logit_bias) {
        if (token < 0 || token >= vocab_size) {
            return invalid(fmt::format("logit_bias names token {}, the vocabulary has the tokens 0 "
                                       "to {}",
                                       token, vocab_size - 1),
                           "logit_bias");
        }
        if (!(bias >= -100 && bias <= 100)) {
            return invalid(
                fmt::format("logit_bias of token {} must be between -100 and 100, got {}", token,
                            bias),
                "logit_bias");
        }
        if (!seen.insert(token).second) {
            return invalid(fmt::format("logit_bias names token {} twice", token), "logit_bias");
        }
    }
    return std::nullopt;
}

std::optional<Error> check_stop_tokens(const SamplingParams& params, std::int64_t vocab_size) {
    for (const base::TokenId token : params.stop_token_ids) {
        if (token >= 0 && token < vocab_size) continue;
        return invalid(fmt::format("stop_token_ids holds token {}, the vocabulary has the tokens 0 "
                                   "to {}",
                                   token, vocab_size - 1),
                       "stop_token_ids");
    }
    return std::nullopt;
}

// While min_tokens holds back end and stop tokens, something must be left.
std::optional<Error> check_choice_is_left(const SamplingParams& params, std::int64_t vocab_size,
                                          std::span<const base::TokenId> end_tokens) {
    if (params.min_tokens == 0) return std::nullopt;
    std::unordered_set<base::TokenId> held_back(params.stop_token_ids.begin(),
                                                params.stop_token_ids.end());
    held_back.insert(end_tokens.begin(), end_tokens.end());
    if (std::ssize(held_back) < vocab_size) return std::nullopt;
    return invalid(fmt::format("stop_token_ids and the model's end tokens are all {} tokens of the "
                               "vocabulary, and min_tokens ({}) forbids each of them; leave some "
                               "token out",
                               vocab_size, params.min_tokens),
                   "stop_token_ids");
}

}  // namespace

bool NumberRange::contains(double value) const {
    return (is_open_below ? value > low : value >= low) && value <= high;
}

std::string NumberRange::text() const {
    return fmt::format("{} {} and at most {}", is_open_below ? "greater than" : "at least", low,
                       high);
}

const NumberRange& number_range(std::string_view field) {
    const auto found = std::ranges::find(kRanges, field, &NumberRange::field);
    CHECK(found != kRanges.end(), "a sampling parameter without a range");
    return *found;
}

std::uint64_t random_seed() {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
}

base::Status validate(const SamplingParams& params, std::int64_t vocab_size,
                      std::span<const base::TokenId> end_tokens) {
    if (auto error = check_numbers(params)) return *error;
    if (auto error = check_counts(params)) return *error;
    if (auto error = check_logprobs("logprobs", params.logprobs)) return *error;
    if (auto error = check_logprobs("prompt_logprobs", params.prompt_logprobs)) return *error;
    if (auto error = check_bias(params, vocab_size)) return *error;
    if (auto error = check_stop_tokens(params, vocab_size)) return *error;
    if (auto error = check_choice_is_left(params, vocab_size, end_tokens)) return *error;
    return {};
}

}  // namespace pagoda::decode
