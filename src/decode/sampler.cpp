#include "decode/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "decode/candidates.h"
#include "decode/philox.h"
#include "decode/processors/processors.h"
#include "decode/vocab_scan.h"

namespace pagoda::decode {

namespace {

bool counts_history(const SamplingParams& params) {
    return params.repetition_penalty != 1.0 || params.presence_penalty != 0.0 ||
           params.frequency_penalty != 0.0;
}

bool is_usable(const RowPeak& peak) {
    return !peak.has_nan && std::isfinite(peak.value);
}

bool is_greedy(const SamplingParams& params) {
    return params.temperature < kGreedyBelowTemperature;
}

void check_in_vocab(std::span<const base::TokenId> tokens, std::int64_t vocab_size) {
    for (const base::TokenId token : tokens) {
        CHECK(token >= 0 && token < vocab_size, "a token is outside the vocabulary");
    }
}

// logits: overwritten.
base::TokenId draw(const SamplingParams& params, double share, std::span<float> logits,
                   float peak) {
    Candidates candidates(logits);
    for (const CandidateFilter& filter : logit_filters()) {
        if (filter.is_wanted(params)) filter.apply(params, candidates);
    }
    exp_row(candidates.values(), peak, static_cast<float>(1.0 / params.temperature));
    for (const CandidateFilter& filter : weight_filters()) {
        if (filter.is_wanted(params)) filter.apply(params, candidates);
    }
    return candidates.token(pick_by_mass(candidates.values(), share));
}

bool is_better(const Alternative& a, const Alternative& b) {
    return a.logprob > b.logprob || (a.logprob == b.logprob && a.token < b.token);
}

// The `count` best tokens, best first. A short list is kept in order while the row passes by, piece
// by piece; a piece whose peak is not above the list's last holds nothing for it.
std::vector<Alternative> best_tokens(std::span<const float> logits, std::size_t count) {
    std::vector<Alternative> best;
    if (count == 0) return best;
    const std::vector<float> peaks = piece_peaks(logits);
    for (std::size_t piece = 0; piece < peaks.size(); ++piece) {
        if (best.size() == count && !(peaks[piece] > best.back().logprob)) continue;
        const std::size_t end = std::min((piece + 1) * kPeakPiece, logits.size());
        for (std::size_t i = piece * kPeakPiece; i < end; ++i) {
            if (best.size() == count && !(logits[i] > best.back().logprob)) continue;
            const Alternative next{static_cast<base::TokenId>(i), logits[i]};
            if (best.size() == count) best.pop_back();
            best.insert(std::upper_bound(best.begin(), best.end(), next, is_better), next);
        }
    }
    return best;
}

std::int64_t rank_of(std::span<const float> logits, std::size_t token) {
    const float own = logits[token];
    const std::size_t ahead =
        count_at_least(logits.first(token), own) + count_above(logits.subspan(token + 1), own);
    return static_cast<std::int64_t>(ahead) + 1;
}

}  // namespace

std::vector<base::TokenId> held_back_tokens(const SamplingParams& params,
                                            std::span<const base::TokenId> end_tokens) {
    if (params.min_tokens == 0) return {};
    std::vector<base::TokenId> tokens = params.stop_token_ids;
    tokens.insert(tokens.end(), end_tokens.begin(), end_tokens.end());
    return tokens;
}

struct Sampler::State {
    TokenHistory history;
    std::shared_ptr<const std::vector<base::TokenId>> held_back;
    std::uint64_t seed = 0;
    std::int64_t vocab_size = 0;
    std::int64_t num_outputs = 0;
};

Sampler::Sampler(std::shared_ptr<const SamplingParams> params, std::uint64_t seed,
                 std::span<const base::TokenId> prompt,
                 std::shared_ptr<const std::vector<base::TokenId>> held_back,
                 std::int64_t vocab_size)
    : params_(std::move(params)), state_(std::make_unique<State>()) {
    state_->seed = seed;
    state_->vocab_size = vocab_size;
    state_->held_back = std::move(held_back);
    check_in_vocab(*state_->held_back, vocab_size);
    check_in_vocab(prompt, vocab_size);
    if (params_->repetition_penalty != 1.0) state_->history.add_prompt(prompt);
}

Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;

void Sampler::accept(base::TokenId token) {
    CHECK(token >= 0 && token < state_->vocab_size, "an output token is outside the vocabulary");
    ++state_->num_outputs;
    if (counts_history(*params_)) state_->history.add_output(token);
}

SampledToken Sampler::sample(std::span<const float> logits, std::int64_t position,
                             std::span<float> scratch) const {
    CHECK(std::ssize(logits) == state_->vocab_size, "logits must have the vocabulary's size");
    CHECK(scratch.size() >= logits.size(), "scratch must have the vocabulary's size");
    RowPeak peak = find_peak(logits);
    if (!is_usable(peak)) return {.fault = SamplingFault::kNotFinite};

    const std::span<float> edited = scratch.first(logits.size());
    const EditContext context{*params_, state_->history, *state_->held_back, state_->num_outputs};
    bool is_edited = false;
    for (const LogitEdit& edit : logit_edits()) {
        if (!edit.is_wanted(context)) continue;
        if (!is_edited) std::copy(logits.begin(), logits.end(), edited.begin());
        is_edited = true;
        edit.apply(context, edited);
    }
    if (is_edited) peak = find_peak(edited);
    if (!is_usable(peak)) return {.fault = SamplingFault::kNoToken};

    SampledToken sampled;
    if (is_greedy(*params_)) {
        const std::span<const float> row = is_edited ? std::span<const float>(edited) : logits;
        sampled.token = static_cast<base::TokenId>(find_first(row, peak.value));
    } else {
        if (!is_edited) std::copy(logits.begin(), logits.end(), edited.begin());
        const double share = uniform_at(state_->seed, static_cast<std::uint64_t>(position));
        sampled.token = draw(*params_, share, edited, peak.value);
    }
    if (params_->logprobs)
        sampled.logprob = token_logprob(logits, sampled.token, *params_->logprobs);
    return sampled;
}

std::optional<TokenLogprob> token_logprob(std::span<const float> logits, base::TokenId token,
                                          int top) {
    CHECK(token >= 0 && token < std::ssize(logits), "the token is outside the vocabulary");
    CHECK(top >= 0, "the number of alternatives is negative");
    const auto index = static_cast<std::size_t>(token);
    const RowPeak row_peak = find_peak(logits);
    if (!is_usable(row_peak)) return std::nullopt;
    const float peak = row_peak.value;
    const double log_total =
        static_cast<double>(peak) + log_of_nonnegative(sum_exp_row(logits, peak));
    const auto logprob_of = [log_total](float logit) {
        return static_cast<float>(static_cast<double>(logit) - log_total);
    };
    TokenLogprob result;
    result.token = token;
    result.logprob = logprob_of(logits[index]);
    result.rank = rank_of(logits, index);
    result.top = best_tokens(logits, static_cast<std::size_t>(top));
    for (Alternative& alternative : result.top) {
        alternative.logprob = logprob_of(alternative.logprob);
    }
    return result;
}

}  // namespace pagoda::decode
