#pragma once
// An answer as a document and its timings as a line. Pure.

#include <span>
#include <string>

#include "base/json.h"
#include "decode/sampling_params.h"
#include "local_answer.h"
#include "text/tokenizer.h"

namespace pagoda::apps {

// {text, token_ids, prompt_token_ids, logprobs, finish_reason, seed, timings}; logprobs are null
// unless they were asked for, else [{id, piece, logprob, rank, top: [{id, piece, logprob}]}].
[[nodiscard]] base::Json answer_json(const text::Tokenizer& tokenizer,
                                     std::span<const base::TokenId> prompt, const Answer& answer,
                                     const decode::SamplingParams& params);

// "12 prompt tokens at 345.6 tokens/s, 64 output tokens at 78.9 tokens/s"
[[nodiscard]] std::string timings_text(const Answer& answer);

[[nodiscard]] base::Json ids_json(std::span<const base::TokenId> ids);
// The text of a token; bytes that are no whole character are U+FFFD.
[[nodiscard]] std::string piece_text(const text::Tokenizer& tokenizer, base::TokenId id);

}  // namespace pagoda::apps
