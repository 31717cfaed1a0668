#pragma once
// Generation: one API call under way: its prompts and choices, the events they produce, and the
// answer, whole or as a stream, in the shape of one API. Created on an HTTP thread, then fed by
// the engine's output thread, or by the AnswerThread where there are log-probabilities to write;
// lives until its last event.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "serve/api/answer_shapes.h"
#include "serve/api/api_context.h"
#include "serve/api/generation_fields.h"
#include "serve/http/response_writer.h"

namespace pagoda::api {

struct GenerationPrompt {
    std::vector<base::TokenId> tokens;
    std::string echo;             // where GenerationFields::echo asks for it
    std::int64_t max_tokens = 0;  // 0: the prompt alone is wanted
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
    // Before any event:
    [[nodiscard]] base::Status check_scores(const std::vector<GenerationPrompt>& prompts) const;
    [[nodiscard]] std::vector<engine::GenerateRequest> prepare(
        std::vector<GenerationPrompt> prompts);
    [[nodiscard]] engine::GenerateRequest request_for(std::size_t number,
                                                      GenerationPrompt&& prompt);
    // Takes the lock itself: events may come while it runs.
    [[nodiscard]] base::Status submit(std::vector<engine::GenerateRequest> requests);
    // Any thread.
    void on_event(std::size_t prompt, engine::TokenEvent&& event) noexcept;
    void abandon();
    // With mutex_ held:
    void take_event(std::size_t prompt, engine::TokenEvent&& event);
    void begin_stream();
    [[nodiscard]] ChoiceState& choice_of(std::size_t prompt, int choice);
    void take(ChoiceState& state, engine::TokenEvent&& event);
    void take_held(std::size_t prompt);
    void stream_event(ChoiceState& state, const engine::TokenEvent& event);
    void fail(const base::Error& error);
    void cancel_all();
    void complete();
    [[nodiscard]] std::string whole_answer();
    [[nodiscard]] base::Json chunk(base::Json choice) const;
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
    std::atomic<bool> is_over_{false};  // answered, failed or abandoned

    std::mutex mutex_;  // guards what is below
    std::vector<PromptState> prompts_;
    std::vector<ChoiceState> choices_;  // [prompt * n + choice]
    // Events that came before the prompt's log-probabilities, which go first, did: by choice.
    std::vector<std::vector<engine::TokenEvent>> held_;
    std::vector<base::RequestId> requests_;  // once they are known; constant from then on
    std::size_t num_open_ = 0;
    bool has_begun_ = false;    // the head of a stream went out
    bool has_written_ = false;  // and a chunk
    std::string unwritten_;     // chunks of the event at hand, which go out together
};

}  // namespace pagoda::api
