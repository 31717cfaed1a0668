#pragma once
// Log-probabilities in the shapes of chat and of text completions. Pure functions.

#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "decode/sampler.h"
#include "text/tokenizer.h"

namespace pagoda::api {

// {"content": [{token, logprob, bytes, top_logprobs}]}
[[nodiscard]] base::Json chat_logprobs(const text::Tokenizer& tokenizer,
                                       std::span<const decode::TokenLogprob> logprobs);

// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}; offsets count characters of the
// choice's text, from `first_offset` on. A NaN log-probability is null: the first token of a prompt
// has none. Pieces of characters are spelled "bytes:\xf0\x9f", as OpenAI does.
struct CompletionLogprobs {
    base::Json json;
    std::int64_t next_offset = 0;
};
[[nodiscard]] CompletionLogprobs completion_logprobs(const text::Tokenizer& tokenizer,
                                                     std::span<const decode::TokenLogprob> logprobs,
                                                     std::int64_t first_offset);

// vLLM's shape: null for the first token, then {"id": {logprob, rank, decoded_token}} each.
[[nodiscard]] base::Json prompt_logprobs_json(const text::Tokenizer& tokenizer,
                                              std::span<const decode::TokenLogprob> logprobs);

}  // namespace pagoda::api
