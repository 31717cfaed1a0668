#pragma once
// Sampler: chooses the next token of one sequence from its logits. Every choice is a function of
// the logits, the parameters, the tokens so far, and (seed, position) alone: a counter-based
// generator (Philox4x32-10, Salmon et al., SC'11) has no state, so batches, restarts and
// speculation change nothing. Ties break to the lower id. One object per sequence, used by one
// thread at a time.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "decode/sampling_params.h"

namespace pagoda::decode {

struct Alternative {
    base::TokenId token = 0;
    float logprob = 0;
};
// Log-probabilities are of the raw distribution, before penalties and temperature.
struct TokenLogprob {
    base::TokenId token = 0;
    float logprob = 0;
    std::int64_t rank = 1;         // 1: the most likely
    std::vector<Alternative> top;  // best first
};

// Why there is no token; the request must fail.
enum class SamplingFault : std::uint8_t {
    kNotFinite,  // the model's logits hold NaN, or have no finite peak
    kNoToken,    // logit_bias, penalties and min_tokens leave none
};

struct SampledToken {
    base::TokenId token = 0;
    std::optional<TokenLogprob> logprob;  // when asked for
    std::optional<SamplingFault> fault;
};

// What min_tokens forbids, if it forbids anything: all tokens that would end the answer.
[[nodiscard]] std::vector<base::TokenId> held_back_tokens(
    const SamplingParams& params, std::span<const base::TokenId> end_tokens);

class Sampler {
  public:
    // The sequences of a request share `params` and `held_back` (held_back_tokens()). Their own is
    // `seed`, which stands for that of the params. prompt: for the repetition penalty.
    Sampler(std::shared_ptr<const SamplingParams> params, std::uint64_t seed,
            std::span<const base::TokenId> prompt,
            std::shared_ptr<const std::vector<base::TokenId>> held_back, std::int64_t vocab_size);
    ~Sampler();
    Sampler(Sampler&&) noexcept;
    Sampler& operator=(Sampler&&) noexcept;

    // The token at `position` (of the whole sequence). logits: [vocab_size], not changed.
    // scratch: [vocab_size] of the calling thread. Does not record the token.
    [[nodiscard]] SampledToken sample(std::span<const float> logits, std::int64_t position,
                                      std::span<float> scratch) const;
    // The token is part of the output now (penalties and min_tokens count it).
    void accept(base::TokenId token);

  private:
    std::shared_ptr<const SamplingParams> params_;
    struct State;
    std::unique_ptr<State> state_;
};

// Log-probability, rank and the `top` best of a token under raw logits. Nothing where they hold NaN
// or have no finite peak.
[[nodiscard]] std::optional<TokenLogprob> token_logprob(std::span<const float> logits,
                                                        base::TokenId token, int top);

}  // namespace pagoda::decode
