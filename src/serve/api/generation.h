#pragma once
// Generation: one API call under way: its prompts and choices, the events they produce, and the
// answer, whole or as a stream, in the shape of one API. Created on an HTTP thread, then fed by
// the engine's output thread; lives until its last event.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "serve/api/api_context.h"
#include "serve/api/generation_fields.h"
#include "serve/http/response_writer.h"

namespace pagoda::api {

// What came of one choice so far.
struct ChoiceState {
    int index = 0;
    std::string echo;  // text that goes before the answer (completions with echo)
    base::TokenId first_prompt_token = 0;
    std::string text;
    std::vector<base::TokenId> tokens;
    std::vector<decode::TokenLogprob> logprobs;
    std::vector<decode::TokenLogprob> prompt_logprobs;
    std::optional<engine::FinishReason> finish;
    base::Json stop_reason;        // the stop string or token id, null for an end token
    bool has_begun = false;        // its first chunk went out
    std::int64_t text_offset = 0;  // characters sent, for completion logprobs
    engine::Usage usage;
};

// How one API writes answers. Stateless; lives for ever.
class AnswerShape {
  public:
    virtual ~AnswerShape() = default;
    [[nodiscard]] virtual std::string_view id_prefix() const = 0;
    [[nodiscard]] virtual std::string_view object(bool is_stream) const = 0;
    // A choice of a whole answer.
    [[nodiscard]] virtual base::Json choice(const text::Tokenizer& tokenizer, ChoiceState& state,
                                            bool with_logprobs) const = 0;
    // A choice of a chunk; `event` holds the news, its text included. Before the first news of a
    // choice, opening() may give a chunk of its own (null: none).
    [[nodiscard]] virtual base::Json opening(int index) const = 0;
    [[nodiscard]] virtual base::Json delta(const text::Tokenizer& tokenizer, ChoiceState& state,
                                           const engine::TokenEvent& event,
                                           bool with_logprobs) const = 0;
};
[[nodiscard]] const AnswerShape& chat_shape();
[[nodiscard]] const AnswerShape& completion_shape();

[[nodiscard]] std::string_view finish_name(engine::FinishReason reason);

struct GenerationPrompt {
    std::vector<base::TokenId> tokens;
    std::string echo;
    std::int64_t max_tokens = 0;
    bool drop_output = false;  // max_tokens 0: only the prompt's log-probabilities are wanted
};

// Everything that one call asks for.
struct GenerationCall {
    GenerationFields fields;
    std::vector<GenerationPrompt> prompts;
    std::string request_id;
    base::ClientId client;
    std::vector<std::string> ignored_fields;
    std::shared_ptr<http::ResponseWriter> writer;
};

class Generation final : public std::enable_shared_from_this<Generation> {
  public:
    // Submits all prompts and answers through the writer, errors included.
    static void start(const ApiContext& context, const AnswerShape& shape, GenerationCall call);

    // Use start().
    Generation(const ApiContext& context, const AnswerShape& shape, GenerationCall&& call);

  private:
    class PromptSink;
    [[nodiscard]] bool submit_or_fail(std::vector<GenerationPrompt> prompts);
    void on_event(std::size_t prompt, engine::TokenEvent&& event);
    void abandon();
    // With mutex_ held:
    [[nodiscard]] base::Status submit(std::vector<GenerationPrompt> prompts);
    void stream_event(ChoiceState& state, const engine::TokenEvent& event);
    void fail(const base::Error& error);
    void complete();
    [[nodiscard]] base::Json envelope(bool is_stream) const;
    [[nodiscard]] base::Json usage_json() const;

    const ApiContext& context_;
    const AnswerShape& shape_;
    const GenerationFields fields_;
    const std::shared_ptr<http::ResponseWriter> writer_;
    const std::string request_id_;
    const base::ClientId client_;
    const std::vector<std::string> ignored_fields_;
    const std::int64_t created_;

    std::mutex mutex_;                  // guards what is below
    std::vector<ChoiceState> choices_;  // [prompt * n + choice]
    std::vector<bool> drops_output_;    // per prompt
    std::vector<base::RequestId> requests_;
    std::size_t num_open_ = 0;
    bool is_over_ = false;  // answered, failed or abandoned
};

}  // namespace pagoda::api
