// Chat and text completions, whole and streamed.

#include "serve/api/answer_shapes.h"

#include "base/utf8.h"

namespace pagoda::api {
namespace {

using base::Json;

Json finish_json(const std::optional<engine::FinishReason>& finish) {
    return finish ? Json(engine::finish_name(*finish)) : Json();
}

class ChatShape final : public AnswerShape {
  public:
    std::string_view id_prefix() const override { return "chatcmpl-"; }
    std::string_view object(bool is_stream) const override {
        return is_stream ? "chat.completion.chunk" : "chat.completion";
    }
    bool scores_choices() const override { return false; }

    Json choice(const AnswerParts& parts, ChoiceState& state) const override {
        Json message = Json::object();
        message.set("role", "assistant").set("content", std::move(state.text));
        message.set("refusal", Json());
        Json json = Json::object();
        json.set("index", state.index);
        json.set("message", std::move(message));
        json.set("logprobs", parts.fields.sampling.logprobs
                                 ? chat_logprobs(parts.tokenizer, state.logprobs)
                                 : Json());
        json.set("finish_reason", finish_json(state.finish));
        json.set("stop_reason", state.stop_reason);
        return json;
    }

    Json opening(const AnswerParts&, ChoiceState& state) const override {
        Json delta = Json::object();
        delta.set("role", "assistant").set("content", "");
        return chunk(state.index, std::move(delta), Json());
    }

    Json delta(const AnswerParts& parts, ChoiceState& state,
               const engine::TokenEvent& event) const override {
        if (event.text.empty() && event.logprobs.empty()) return {};
        Json logprobs =
            event.logprobs.empty() ? Json() : chat_logprobs(parts.tokenizer, event.logprobs);
        return chunk(state.index, Json::object().set("content", event.text), std::move(logprobs));
    }

    Json ending(const ChoiceState& state) const override {
        Json json = chunk(state.index, Json::object(), Json());
        json.set("finish_reason", finish_json(state.finish));
        json.set("stop_reason", state.stop_reason);
        return json;
    }

  private:
    static Json chunk(int index, Json delta, Json logprobs) {
        Json json = Json::object();
        json.set("index", index);
        json.set("delta", std::move(delta));
        json.set("logprobs", std::move(logprobs));
        json.set("finish_reason", Json());
        return json;
    }
};

class CompletionShape final : public AnswerShape {
  public:
    std::string_view id_prefix() const override { return "cmpl-"; }
    std::string_view object(bool) const override { return "text_completion"; }
    bool scores_choices() const override { return true; }

    Json choice(const AnswerParts& parts, ChoiceState& state) const override {
        std::string text = parts.fields.echo ? state.prompt->echo + state.text : state.text;
        Json logprobs;
        if (parts.fields.sampling.logprobs) {
            CompletionLogprobs all = begin_logprobs(parts, state);
            all.add(state.logprobs);
            logprobs = all.take(base::num_characters(text), /*has_ended=*/true);
        }
        return write(state, std::move(text), std::move(logprobs), finish_json(state.finish));
    }

    // The echo has a chunk of its own, with what is known of the prompt.
    Json opening(const AnswerParts& parts, ChoiceState& state) const override {
        if (parts.fields.sampling.logprobs) state.waiting.emplace(begin_logprobs(parts, state));
        if (!parts.fields.echo && !parts.fields.prompt_logprobs) return {};
        const std::string text = parts.fields.echo ? state.prompt->echo : std::string();
        return write(state, text, take_logprobs(state, text, /*has_ended=*/false), Json());
    }

    Json delta(const AnswerParts&, ChoiceState& state,
               const engine::TokenEvent& event) const override {
        if (state.waiting) state.waiting->add(event.logprobs);
        Json logprobs = take_logprobs(state, event.text, event.finish.has_value());
        if (event.text.empty() && logprobs.is_null()) return {};
        return write(state, event.text, std::move(logprobs), Json());
    }

    Json ending(const ChoiceState& state) const override {
        return write(state, "", Json(), finish_json(state.finish));
    }

  private:
    static CompletionLogprobs begin_logprobs(const AnswerParts& parts, const ChoiceState& state) {
        const GenerationFields& fields = parts.fields;
        const PromptState& prompt = *state.prompt;
        CompletionLogprobs logprobs(parts.tokenizer, {.num_top = *fields.sampling.logprobs,
                                                      .skip_special = fields.skip_special_tokens,
                                                      .tail = prompt.tail});
        if (fields.echo && prompt.scored)
            logprobs.add_prompt(prompt.first_token, *prompt.scored,
                                base::num_characters(prompt.echo));
        return logprobs;
    }

    // Those whose text is written, with this text.
    static Json take_logprobs(ChoiceState& state, const std::string& text, bool has_ended) {
        state.num_characters += base::num_characters(text);
        return state.waiting ? state.waiting->take(state.num_characters, has_ended) : Json();
    }

    static Json write(const ChoiceState& state, std::string text, Json logprobs, Json finish) {
        Json json = Json::object();
        json.set("index", state.index);
        json.set("text", std::move(text));
        json.set("logprobs", std::move(logprobs));
        const Json stop_reason = finish.is_null() ? Json() : state.stop_reason;
        json.set("finish_reason", std::move(finish));
        json.set("stop_reason", stop_reason);
        return json;
    }
};

}  // namespace

const AnswerShape& chat_shape() {
    static const ChatShape shape;
    return shape;
}

const AnswerShape& completion_shape() {
    static const CompletionShape shape;
    return shape;
}

}  // namespace pagoda::api
