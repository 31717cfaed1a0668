#pragma once
// Log-probabilities in the shapes of chat and of text completions. Pure functions, and one object
// that knows where the tokens of a text stand.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "decode/sampler.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace pagoda::api {

// {"content": [{token, logprob, bytes, top_logprobs}]}
[[nodiscard]] base::Json chat_logprobs(const text::Tokenizer& tokenizer,
                                       std::span<const decode::TokenLogprob> logprobs);

// vLLM's shape: null for the first token, then {"id": {logprob, rank, decoded_token}} each, of the
// token and its `num_top` best alternatives.
[[nodiscard]] base::Json prompt_logprobs_json(const text::Tokenizer& tokenizer,
                                              std::span<const decode::TokenLogprob> logprobs,
                                              int num_top);

// CompletionLogprobs: the log-probabilities of one choice of a text completion, in the shape
// {"tokens", "token_logprobs", "top_logprobs", "text_offset"}. An offset counts the characters of
// the choice's text, echo included, before the token's own: what the text does not hold (special
// tokens that are skipped, a leading space that is dropped, text behind a stop string) counts
// nothing, and the pieces of one character stand at its place. Pieces are spelled
// "bytes:\xf0\x9f", as OpenAI does. One thread; the tokenizer outlives it.
class CompletionLogprobs {
  public:
    struct Options {
        int num_top = 0;
        bool skip_special = true;
        std::vector<base::TokenId> tail = {};  // of the prompt, see text::visible_tail
    };
    CompletionLogprobs(const text::Tokenizer& tokenizer, const Options& options);

    // Before any other: the prompt's tokens, whose text of that many characters comes first. Of the
    // first token nothing is known: null.
    void add_prompt(base::TokenId first_token, std::span<const decode::TokenLogprob> rest,
                    std::int64_t num_characters);
    // Tokens of the output, in their order.
    void add(std::span<const decode::TokenLogprob> logprobs);

    // Gives, once, those that stand in a text of so many characters: all, when it has ended there.
    // The others wait: their text may be cut off by a stop string. Null when there are none.
    [[nodiscard]] base::Json take(std::int64_t num_characters, bool has_ended);

  private:
    struct Entry {
        decode::TokenLogprob logprob;
        std::int64_t offset = 0;
    };
    void place(text::Detokenizer& detokenizer, const decode::TokenLogprob& logprob);

    const text::Tokenizer& tokenizer_;
    int num_top_;
    bool skip_special_;
    text::Detokenizer detokenizer_;  // of the output
    std::vector<Entry> waiting_;
    std::int64_t next_offset_ = 0;
};

}  // namespace pagoda::api
