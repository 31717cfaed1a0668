#include "serve/api/generation.h"

#include <utility>

#include "serve/api/logprobs_json.h"
#include "serve/api/request_body.h"

namespace pagoda::api {

using base::Json;
using engine::FinishReason;
using engine::TokenEvent;

// Where the events of one prompt's choices go.
class Generation::PromptSink final : public engine::TokenSink {
  public:
    // The generation is owned by its sinks, and so by the engine until the last event.
    PromptSink(std::shared_ptr<Generation> generation, std::size_t prompt)
        : generation_(std::move(generation)), prompt_(prompt) {}
    void on_event(TokenEvent&& event) noexcept override {
        generation_->on_event(prompt_, std::move(event));
    }

  private:
    std::shared_ptr<Generation> generation_;
    std::size_t prompt_;
};

Generation::Generation(const ApiContext& context, const AnswerShape& shape, GenerationCall&& call)
    : context_(context),
      shape_(shape),
      fields_(std::move(call.fields)),
      writer_(std::move(call.writer)),
      request_id_(std::move(call.request_id)),
      client_(call.client),
      ignored_fields_(std::move(call.ignored_fields)),
      created_(context.clock->unix_seconds()) {}

void Generation::start(const ApiContext& context, const AnswerShape& shape, GenerationCall call) {
    std::vector<GenerationPrompt> prompts = std::move(call.prompts);
    const auto generation = std::make_shared<Generation>(context, shape, std::move(call));
    if (!generation->submit_or_fail(std::move(prompts))) return;
    generation->writer_->on_disconnect([weak = std::weak_ptr<Generation>(generation)] {
        if (const auto alive = weak.lock()) alive->abandon();
    });
}

// Under one lock, so that no event of the prompts that were taken comes before the refusal.
bool Generation::submit_or_fail(std::vector<GenerationPrompt> prompts) {
    const std::lock_guard lock(mutex_);
    const auto submitted = submit(std::move(prompts));
    if (!submitted) fail(submitted.error());
    return submitted.ok();
}

base::Status Generation::submit(std::vector<GenerationPrompt> prompts) {
    const auto per_prompt = static_cast<std::size_t>(fields_.num_choices);
    choices_.resize(prompts.size() * per_prompt);
    num_open_ = choices_.size();
    for (std::size_t index = 0; index < choices_.size(); ++index) {
        choices_[index].index = static_cast<int>(index);
        choices_[index].echo = prompts[index / per_prompt].echo;
        choices_[index].first_prompt_token = prompts[index / per_prompt].tokens.front();
    }
    for (std::size_t number = 0; number < prompts.size(); ++number) {
        GenerationPrompt& prompt = prompts[number];
        drops_output_.push_back(prompt.drop_output);
        engine::GenerateRequest generate{
            .id = request_id_,
            .client = client_,
            .priority = fields_.priority,
            .prompt = std::move(prompt.tokens),
            .sampling = fields_.sampling,
            .num_choices = static_cast<int>(fields_.num_choices),
            .stop = fields_.stop,
            .include_stop_string = fields_.include_stop_string,
            .skip_special_tokens = fields_.skip_special_tokens,
            .sink = std::make_shared<PromptSink>(shared_from_this(), number)};
        generate.sampling.max_tokens = prompt.max_tokens;
        auto id = context_.engine->submit(generate);
        if (!id) return std::move(id).error();
        requests_.push_back(*id);
    }
    // Headers go out at admission, so that a long prefill does not look like a dead server.
    if (fields_.stream) {
        http::Response head{.content_type = "text/event-stream; charset=utf-8"};
        add_ignored_fields(ignored_fields_, head);
        writer_->begin_stream(std::move(head));
    }
    return {};
}

void Generation::on_event(std::size_t prompt, TokenEvent&& event) {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    if (event.error) {
        fail(*event.error);
        return;
    }
    if (event.finish == FinishReason::kAborted) {
        fail({base::ErrorCode::kUnavailable, "the server is shutting down"});
        return;
    }
    if (drops_output_[prompt]) {
        event.text.clear();
        event.tokens.clear();
        event.logprobs.clear();
        event.usage.completion_tokens = 0;
        if (event.finish) event.finish = FinishReason::kLength;
    }
    ChoiceState& state = choices_[prompt * static_cast<std::size_t>(fields_.num_choices) +
                                  static_cast<std::size_t>(event.choice)];
    state.usage = event.usage;
    state.finish = event.finish;
    if (event.stop_string) state.stop_reason = *event.stop_string;
    if (event.stop_token && !context_.tokenizer->is_end_of_generation(*event.stop_token))
        state.stop_reason = static_cast<std::int64_t>(*event.stop_token);
    if (fields_.stream) {
        stream_event(state, event);
    } else {
        state.text += event.text;
        for (auto& logprob : event.logprobs) state.logprobs.push_back(std::move(logprob));
        for (auto& logprob : event.prompt_logprobs)
            state.prompt_logprobs.push_back(std::move(logprob));
    }
    if (event.finish && --num_open_ == 0) complete();
}

void Generation::stream_event(ChoiceState& state, const TokenEvent& event) {
    std::string data;
    const auto add = [&](Json choice) {
        Json chunk = envelope(/*is_stream=*/true);
        chunk.set("choices", Json(Json::Array{std::move(choice)}));
        if (fields_.continuous_usage_stats)
            chunk.set("usage", usage_json());
        else if (fields_.include_usage)
            chunk.set("usage", Json());
        data += http::sse_data(chunk);
    };
    if (!state.has_begun) {
        Json opening = shape_.opening(state.index);
        if (!opening.is_null()) add(std::move(opening));
    }
    const bool has_news = !event.text.empty() || event.finish || !event.logprobs.empty() ||
                          (!state.has_begun && !state.echo.empty());
    if (has_news)
        add(shape_.delta(*context_.tokenizer, state, event, fields_.sampling.logprobs.has_value()));
    state.has_begun = state.has_begun || has_news;
    if (!data.empty()) writer_->write(std::move(data));
}

void Generation::fail(const base::Error& error) {
    if (std::exchange(is_over_, true)) return;
    for (const base::RequestId request : requests_) context_.engine->cancel(request);
    const bool has_begun =
        fields_.stream && !requests_.empty() &&
        requests_.size() * static_cast<std::size_t>(fields_.num_choices) == choices_.size();
    if (!has_begun) {
        http::Response response = to_response(error);
        add_ignored_fields(ignored_fields_, response);
        writer_->send(std::move(response));
        return;
    }
    writer_->write(http::sse_data(http::error_json(to_http(error))));
    writer_->end();
}

void Generation::complete() {
    is_over_ = true;
    if (fields_.stream) {
        std::string data;
        if (fields_.include_usage) {
            Json chunk = envelope(/*is_stream=*/true);
            chunk.set("choices", Json::array());
            chunk.set("usage", usage_json());
            data += http::sse_data(chunk);
        }
        data += http::kSseDone;
        writer_->write(std::move(data));
        writer_->end();
        return;
    }
    Json answer = envelope(/*is_stream=*/false);
    Json::Array choices;
    for (ChoiceState& state : choices_)
        choices.push_back(
            shape_.choice(*context_.tokenizer, state, fields_.sampling.logprobs.has_value()));
    answer.set("choices", std::move(choices));
    answer.set("usage", usage_json());
    if (fields_.sampling.prompt_logprobs)
        answer.set("prompt_logprobs",
                   prompt_logprobs_json(*context_.tokenizer, choices_.front().prompt_logprobs));
    http::Response response = http::json_response(answer);
    add_ignored_fields(ignored_fields_, response);
    writer_->send(std::move(response));
}

// The reader is gone: its work stops within a step.
void Generation::abandon() {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_over_, true)) return;
    for (const base::RequestId request : requests_) context_.engine->cancel(request);
}

Json Generation::envelope(bool is_stream) const {
    Json json = Json::object();
    json.set("id", std::string(shape_.id_prefix()) + request_id_);
    json.set("object", shape_.object(is_stream));
    json.set("created", created_);
    json.set("model", fields_.model.value_or(context_.model_names.front()));
    return json;
}

// Prompt tokens count once for all choices of a prompt.
Json Generation::usage_json() const {
    std::int64_t prompt = 0;
    std::int64_t cached = 0;
    std::int64_t completion = 0;
    const auto per_prompt = static_cast<std::size_t>(fields_.num_choices);
    for (std::size_t index = 0; index < choices_.size(); ++index) {
        const engine::Usage& usage = choices_[index].usage;
        completion += usage.completion_tokens;
        if (index % per_prompt != 0) continue;
        prompt += usage.prompt_tokens;
        cached += usage.cached_tokens;
    }
    Json json = Json::object();
    json.set("prompt_tokens", prompt);
    json.set("completion_tokens", completion);
    json.set("total_tokens", prompt + completion);
    Json details = Json::object();
    details.set("cached_tokens", cached);
    json.set("prompt_tokens_details", std::move(details));
    return json;
}

}  // namespace pagoda::api
