// Chat and text completions, whole and streamed.

#include <limits>

#include "serve/api/generation.h"
#include "serve/api/logprobs_json.h"

namespace pagoda::api {
namespace {

using base::Json;

Json finish_json(const std::optional<engine::FinishReason>& finish) {
    return finish ? Json(finish_name(*finish)) : Json();
}

class ChatShape final : public AnswerShape {
  public:
    std::string_view id_prefix() const override { return "chatcmpl-"; }
    std::string_view object(bool is_stream) const override {
        return is_stream ? "chat.completion.chunk" : "chat.completion";
    }

    Json choice(const text::Tokenizer& tokenizer, ChoiceState& state,
                bool with_logprobs) const override {
        Json message = Json::object();
        message.set("role", "assistant").set("content", state.text).set("refusal", Json());
        Json json = Json::object();
        json.set("index", state.index);
        json.set("message", std::move(message));
        json.set("logprobs", with_logprobs ? chat_logprobs(tokenizer, state.logprobs) : Json());
        json.set("finish_reason", finish_json(state.finish));
        json.set("stop_reason", state.stop_reason);
        return json;
    }

    Json opening(int index) const override {
        Json delta = Json::object();
        delta.set("role", "assistant").set("content", "");
        return chunk(index, std::move(delta), Json(), std::nullopt);
    }

    Json delta(const text::Tokenizer& tokenizer, ChoiceState& state,
               const engine::TokenEvent& event, bool with_logprobs) const override {
        Json delta = Json::object();
        if (!event.text.empty() || !event.finish) delta.set("content", event.text);
        Json logprobs = with_logprobs && !event.logprobs.empty()
                            ? chat_logprobs(tokenizer, event.logprobs)
                            : Json();
        Json json = chunk(state.index, std::move(delta), std::move(logprobs), event.finish);
        if (event.finish) json.set("stop_reason", state.stop_reason);
        return json;
    }

  private:
    static Json chunk(int index, Json delta, Json logprobs,
                      const std::optional<engine::FinishReason>& finish) {
        Json json = Json::object();
        json.set("index", index);
        json.set("delta", std::move(delta));
        json.set("logprobs", std::move(logprobs));
        json.set("finish_reason", finish_json(finish));
        return json;
    }
};

class CompletionShape final : public AnswerShape {
  public:
    std::string_view id_prefix() const override { return "cmpl-"; }
    std::string_view object(bool) const override { return "text_completion"; }

    Json choice(const text::Tokenizer& tokenizer, ChoiceState& state,
                bool with_logprobs) const override {
        return write(state, state.echo + state.text,
                     with_logprobs ? all_logprobs(tokenizer, state) : Json(), state.finish);
    }

    Json opening(int) const override { return {}; }

    Json delta(const text::Tokenizer& tokenizer, ChoiceState& state,
               const engine::TokenEvent& event, bool with_logprobs) const override {
        Json logprobs;
        if (with_logprobs && !event.logprobs.empty()) {
            CompletionLogprobs part =
                completion_logprobs(tokenizer, event.logprobs, state.text_offset);
            state.text_offset = part.next_offset;
            logprobs = std::move(part.json);
        }
        const std::string text = state.has_begun ? event.text : state.echo + event.text;
        return write(state, text, std::move(logprobs), event.finish);
    }

  private:
    static Json all_logprobs(const text::Tokenizer& tokenizer, ChoiceState& state) {
        std::vector<decode::TokenLogprob> all;
        if (!state.echo.empty()) {
            all.push_back({.token = state.first_prompt_token,
                           .logprob = std::numeric_limits<float>::quiet_NaN()});
            all.insert(all.end(), state.prompt_logprobs.begin(), state.prompt_logprobs.end());
        }
        all.insert(all.end(), state.logprobs.begin(), state.logprobs.end());
        return completion_logprobs(tokenizer, all, 0).json;
    }

    static Json write(const ChoiceState& state, const std::string& text, Json logprobs,
                      const std::optional<engine::FinishReason>& finish) {
        Json json = Json::object();
        json.set("index", state.index);
        json.set("text", text);
        json.set("logprobs", std::move(logprobs));
        json.set("finish_reason", finish_json(finish));
        json.set("stop_reason", state.stop_reason);
        return json;
    }
};

}  // namespace

std::string_view finish_name(engine::FinishReason reason) {
    switch (reason) {
        case engine::FinishReason::kStop:
            return "stop";
        case engine::FinishReason::kLength:
            return "length";
        case engine::FinishReason::kAborted:
            return "abort";
        case engine::FinishReason::kError:
            return "error";
    }
    return "error";
}

const AnswerShape& chat_shape() {
    static const ChatShape shape;
    return shape;
}

const AnswerShape& completion_shape() {
    static const CompletionShape shape;
    return shape;
}

}  // namespace pagoda::api
