#pragma once
// How each API writes answers: choices of whole answers, and the chunks of streams, which come in
// the order opening, deltas, ending. The shapes are stateless and live for ever; what they write is
// decided by the state of the choice, which they move on. Called under the Generation's lock.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/request.h"
#include "serve/api/generation_fields.h"
#include "serve/api/logprobs_json.h"
#include "text/tokenizer.h"

namespace pagoda::api {

// What the choices of one prompt have in common.
struct PromptState {
    std::string echo;  // goes before each answer where GenerationFields::echo asks for it
    base::TokenId first_token = 0;
    std::vector<base::TokenId> tail;  // see text::visible_tail
    // Log-probabilities of its tokens from the second on, once they have come.
    std::optional<std::vector<decode::TokenLogprob>> scored;
};

// What came of one choice so far.
struct ChoiceState {
    int index = 0;
    const PromptState* prompt = nullptr;  // owner: the Generation, like this
    std::string text;                     // of whole answers
    std::vector<decode::TokenLogprob> logprobs;
    std::optional<engine::FinishReason> finish;
    base::Json stop_reason;  // the stop string or token id, null for an end token
    engine::Usage usage;
    // Of streams:
    bool has_begun = false;                     // the opening was written
    std::int64_t num_characters = 0;            // of the text that was written
    std::optional<CompletionLogprobs> waiting;  // whose text was not written yet
};

// What a shape works with.
struct AnswerParts {
    const text::Tokenizer& tokenizer;
    const GenerationFields& fields;
};

class AnswerShape {
  public:
    virtual ~AnswerShape() = default;
    [[nodiscard]] virtual std::string_view id_prefix() const = 0;
    [[nodiscard]] virtual std::string_view object(bool is_stream) const = 0;
    // Where prompt_logprobs stand, as in vLLM: in each choice, or beside the choices.
    [[nodiscard]] virtual bool scores_choices() const = 0;
    // A choice of a whole answer.
    [[nodiscard]] virtual base::Json choice(const AnswerParts& parts, ChoiceState& state) const = 0;
    // The first chunk of a choice; null: none is needed.
    [[nodiscard]] virtual base::Json opening(const AnswerParts& parts,
                                             ChoiceState& state) const = 0;
    // Text and log-probabilities of an event; null when it has neither.
    [[nodiscard]] virtual base::Json delta(const AnswerParts& parts, ChoiceState& state,
                                           const engine::TokenEvent& event) const = 0;
    // The last chunk of a choice, without text.
    [[nodiscard]] virtual base::Json ending(const ChoiceState& state) const = 0;
};
[[nodiscard]] const AnswerShape& chat_shape();
[[nodiscard]] const AnswerShape& completion_shape();

}  // namespace pagoda::api
