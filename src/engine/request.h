#pragma once
// GenerateRequest and TokenEvent: the seam between serve and engine. Value types.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "decode/sampler.h"
#include "decode/sampling_params.h"
#include "sched/step_plan.h"

namespace pagoda::engine {

using sched::FinishReason;

// As answers and metrics spell it: "stop", "length", "abort", "error".
[[nodiscard]] std::string_view finish_name(FinishReason reason);

struct Usage {
    std::int64_t prompt_tokens = 0;
    std::int64_t cached_tokens = 0;      // of the prompt, found in the prefix cache
    std::int64_t completion_tokens = 0;  // of this choice, end and stop tokens included
};

// Milliseconds of one choice.
struct Timings {
    double queue_ms = 0;    // from submit to its first step
    double prefill_ms = 0;  // from there to its first token
    double decode_ms = 0;   // from there to its last
};

// News of one choice. Events of a choice come in order; the one with `finish` or `error` is its
// last. Joined `text` is the answer.
struct TokenEvent {
    int choice = 0;
    std::string text;                            // valid UTF-8, may be empty
    std::vector<base::TokenId> tokens;           // produced since the last event
    std::vector<decode::TokenLogprob> logprobs;  // as many as tokens, when asked for
    // Prompt tokens' log-probabilities, from the second token on; all at once, before any token.
    std::vector<decode::TokenLogprob> prompt_logprobs;
    std::optional<FinishReason> finish;
    std::optional<std::string> stop_string;   // which one ended it
    std::optional<base::TokenId> stop_token;  // which end or stop token ended it
    std::optional<base::Error> error;         // the request failed; others did not
    Usage usage;                              // so far
    Timings timings;                          // with the last event
};

// Where a request's events go. Called on the engine's output thread, one call at a time; must not
// block. Calls end with the last event of every choice.
class TokenSink {
  public:
    virtual ~TokenSink() = default;
    virtual void on_event(TokenEvent&& event) noexcept = 0;
};

struct GenerateRequest {
    std::string id;  // for logs and traces: x-request-id
    base::ClientId client;
    std::int32_t priority = 0;
    // Prompts share KV blocks only where client and salt are the same.
    std::string cache_salt;
    std::vector<base::TokenId> prompt;
    decode::SamplingParams sampling;
    int num_choices = 1;  // choice k samples with seed + k
    std::vector<std::string> stop;
    bool include_stop_string = false;
    bool skip_special_tokens = true;
    // The prompt alone is wanted: the one token that a step makes of it (max_tokens is 1) is
    // neither sent nor counted, and the finish reason is kLength.
    bool is_prompt_only = false;
    std::shared_ptr<TokenSink> sink;  // owned by the engine until the last event, and by the caller
};

// The param of an error about a prompt that does not fit into the context, alone or with
// max_tokens: no one field is at fault.
inline constexpr std::string_view kContextLength = "context_length";

// The tokens that may be generated after a prompt of that length: those asked for, or what is left
// of the context. Errors have kContextLength as param.
[[nodiscard]] base::Result<std::int64_t> resolve_max_tokens(
    const std::optional<std::int64_t>& asked, std::int64_t num_prompt_tokens,
    std::int64_t max_model_len);

}  // namespace pagoda::engine
