#include "serve/api/generation.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/core.h>

#include "serve/api/logprobs_json.h"
#include "serve/api/request_body.h"
#include "text/detokenizer.h"

namespace pagoda::api {

using base::Json;
using engine::FinishReason;
using engine::TokenEvent;

namespace {

// Log-probabilities of prompts that one call may ask for, alternatives and repetitions included:
// some 20 MiB of an answer's text.
constexpr std::int64_t kMaxPromptScores = std::int64_t{1} << 18;

void add_prompt_logprobs(const AnswerParts& parts, const PromptState& prompt, Json& json) {
    if (!parts.fields.prompt_logprobs || !prompt.scored) return;
    json.set("prompt_logprobs",
             prompt_logprobs_json(parts.tokenizer, *prompt.scored, *parts.fields.prompt_logprobs));
}

}  // namespace

// Where the events of one prompt's choices go.
class Generation::PromptSink final : public engine::TokenSink {
  public:
    // The generation is owned by its sinks, and so by the engine until the last event.
    PromptSink(std::shared_ptr<Generation> generation, std::size_t prompt)
        : generation_(std::move(generation)), prompt_(prompt) {}

    void on_event(TokenEvent&& event) noexcept override {
        const decode::SamplingParams& asked = generation_->fields_.sampling;
        if (!asked.logprobs && !asked.prompt_logprobs) {
            generation_->on_event(prompt_, std::move(event));
            return;
        }
        // A function must be copyable; this one is only moved.
        const auto moved = std::make_shared<TokenEvent>(std::move(event));
        generation_->context_.answers->post([generation = generation_, prompt = prompt_, moved] {
            generation->on_event(prompt, std::move(*moved));
        });
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
    base::Status taken = generation->check_scores(prompts);
    if (taken) taken = generation->submit(generation->prepare(std::move(prompts)));
    if (!taken) {
        const std::lock_guard lock(generation->mutex_);
        generation->fail(taken.error());
        return;
    }
    generation->writer_->on_disconnect([weak = std::weak_ptr<Generation>(generation)] {
        if (const auto alive = weak.lock()) alive->abandon();
    });
}

base::Status Generation::check_scores(const std::vector<GenerationPrompt>& prompts) const {
    if (!fields_.sampling.prompt_logprobs) return {};
    std::int64_t scores = 0;
    for (const GenerationPrompt& prompt : prompts)
        scores += std::ssize(prompt.tokens) * (*fields_.sampling.prompt_logprobs + 1);
    if (shape_.scores_choices()) scores *= fields_.num_choices;
    if (scores <= kMaxPromptScores) return {};
    return base::invalid(
        fmt::format("the log-probabilities of these prompts are {} with their alternatives and in "
                    "every choice, the most is {}; ask for fewer alternatives, prompts or choices",
                    scores, kMaxPromptScores),
        fields_.prompt_logprobs ? "prompt_logprobs" : "logprobs");
}

std::vector<engine::GenerateRequest> Generation::prepare(std::vector<GenerationPrompt> prompts) {
    const auto per_prompt = static_cast<std::size_t>(fields_.num_choices);
    prompts_.resize(prompts.size());
    choices_.resize(prompts.size() * per_prompt);
    held_.resize(choices_.size());
    num_open_ = choices_.size();
    for (std::size_t index = 0; index < choices_.size(); ++index) {
        choices_[index].index = static_cast<int>(index);
        choices_[index].prompt = &prompts_[index / per_prompt];
    }
    std::vector<engine::GenerateRequest> requests;
    for (std::size_t number = 0; number < prompts.size(); ++number)
        requests.push_back(request_for(number, std::move(prompts[number])));
    return requests;
}

// The first events may come while the engine still takes the last requests: what they need of this
// call, the head of the stream, whoever is first does.
base::Status Generation::submit(std::vector<engine::GenerateRequest> requests) {
    auto ids = context_.engine->submit(std::move(requests));
    if (!ids) return std::move(ids).error();
    const std::lock_guard lock(mutex_);
    requests_ = std::move(ids).value();
    // Headers go out at admission, so that a long prefill does not look like a dead server.
    begin_stream();
    if (is_over_) cancel_all();
    return {};
}

void Generation::begin_stream() {
    if (!fields_.stream || is_over_ || std::exchange(has_begun_, true)) return;
    http::Response head{.content_type = "text/event-stream; charset=utf-8"};
    add_ignored_fields(ignored_fields_, head);
    writer_->begin_stream(std::move(head));
}

engine::GenerateRequest Generation::request_for(std::size_t number, GenerationPrompt&& prompt) {
    PromptState& state = prompts_[number];
    state.echo = std::move(prompt.echo);
    state.first_token = prompt.tokens.front();
    state.tail =
        text::visible_tail(*context_.tokenizer, prompt.tokens, fields_.skip_special_tokens);
    engine::GenerateRequest request{
        .id = request_id_,
        .client = client_,
        .priority = fields_.priority,
        .cache_salt = fields_.cache_salt,
        .prompt = std::move(prompt.tokens),
        .sampling = fields_.sampling,
        .num_choices = static_cast<int>(fields_.num_choices),
        .stop = fields_.stop,
        .include_stop_string = fields_.include_stop_string,
        .skip_special_tokens = fields_.skip_special_tokens,
        .is_prompt_only = prompt.max_tokens == 0,
        .sink = std::make_shared<PromptSink>(shared_from_this(), number)};
    request.sampling.max_tokens = std::max<std::int64_t>(prompt.max_tokens, 1);
    return request;
}

ChoiceState& Generation::choice_of(std::size_t prompt, int choice) {
    return choices_[prompt * static_cast<std::size_t>(fields_.num_choices) +
                    static_cast<std::size_t>(choice)];
}

void Generation::on_event(std::size_t prompt, TokenEvent&& event) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        if (!is_over_) take_event(prompt, std::move(event));
    } catch (const std::exception& fault) {
        // Memory, above all. Others go on.
        fail({base::ErrorCode::kInternal, fault.what()});
    }
}

void Generation::take_event(std::size_t prompt, TokenEvent&& event) {
    if (event.error) {
        fail(*event.error);
        return;
    }
    if (event.finish == FinishReason::kAborted) {
        fail({base::ErrorCode::kUnavailable, "the server is shutting down"});
        return;
    }
    begin_stream();
    PromptState& state = prompts_[prompt];
    ChoiceState& choice = choice_of(prompt, event.choice);
    const bool is_first = event.choice == 0 && !state.scored;
    // They come with the first choice, and go out before anything of the others.
    if (is_first) state.scored = std::move(event.prompt_logprobs);
    if (fields_.stream && fields_.sampling.prompt_logprobs && !state.scored) {
        held_[static_cast<std::size_t>(choice.index)].push_back(std::move(event));
        return;
    }
    take(choice, std::move(event));
    if (is_first) take_held(prompt);
    if (!unwritten_.empty()) writer_->write(std::exchange(unwritten_, {}));
    if (num_open_ == 0) complete();
}

void Generation::take_held(std::size_t prompt) {
    for (int number = 1; number < fields_.num_choices; ++number) {
        ChoiceState& choice = choice_of(prompt, number);
        auto& held = held_[static_cast<std::size_t>(choice.index)];
        for (TokenEvent& event : std::exchange(held, {})) take(choice, std::move(event));
    }
}

void Generation::take(ChoiceState& state, TokenEvent&& event) {
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
    }
    if (event.finish) --num_open_;
}

// The order that clients expect of a choice: its opening once, text, its ending once.
void Generation::stream_event(ChoiceState& state, const TokenEvent& event) {
    const AnswerParts parts{*context_.tokenizer, fields_};
    if (!std::exchange(state.has_begun, true)) {
        Json opening = shape_.opening(parts, state);
        if (!opening.is_null()) {
            if (shape_.scores_choices()) add_prompt_logprobs(parts, *state.prompt, opening);
            Json first = chunk(std::move(opening));
            if (!shape_.scores_choices() && !std::exchange(has_written_, true))
                add_prompt_logprobs(parts, *state.prompt, first);
            unwritten_ += http::sse_data(first);
        }
    }
    Json delta = shape_.delta(parts, state, event);
    if (!delta.is_null()) unwritten_ += http::sse_data(chunk(std::move(delta)));
    if (event.finish) unwritten_ += http::sse_data(chunk(shape_.ending(state)));
}

Json Generation::chunk(Json choice) const {
    Json json = envelope(/*is_stream=*/true);
    json.set("choices", Json(Json::Array{std::move(choice)}));
    if (fields_.continuous_usage_stats)
        json.set("usage", usage_json());
    else if (fields_.include_usage)
        json.set("usage", Json());
    return json;
}

void Generation::cancel_all() {
    for (const base::RequestId request : requests_) context_.engine->cancel(request);
}

void Generation::fail(const base::Error& error) {
    if (is_over_.exchange(true)) return;
    cancel_all();
    if (!has_begun_) {
        http::Response response = to_response(error);
        add_ignored_fields(ignored_fields_, response);
        writer_->send(std::move(response));
        return;
    }
    writer_->write(http::sse_data(http::error_json(to_http(error))));
    writer_->end();
}

void Generation::complete() {
    if (!fields_.stream) {
        http::Response response{.body = whole_answer()};
        add_ignored_fields(ignored_fields_, response);
        if (!is_over_.exchange(true)) writer_->send(std::move(response));
        return;
    }
    if (is_over_.exchange(true)) return;
    std::string data;
    if (fields_.include_usage) {
        Json last = envelope(/*is_stream=*/true);
        last.set("choices", Json::array());
        last.set("usage", usage_json());
        data += http::sse_data(last);
    }
    data += http::kSseDone;
    writer_->write(std::move(data));
    writer_->end();
}

// One choice at a time: as a tree, log-probabilities take several times what their text does.
std::string Generation::whole_answer() {
    const AnswerParts parts{*context_.tokenizer, fields_};
    std::string text = envelope(/*is_stream=*/false).dump();
    text.pop_back();
    text += R"(,"choices":[)";
    for (ChoiceState& state : choices_) {
        Json choice = shape_.choice(parts, state);
        if (shape_.scores_choices()) add_prompt_logprobs(parts, *state.prompt, choice);
        if (state.index > 0) text += ',';
        text += choice.dump();
    }
    Json rest = Json::object();
    rest.set("usage", usage_json());
    if (!shape_.scores_choices()) add_prompt_logprobs(parts, prompts_.front(), rest);
    return text + "]," + rest.dump().substr(1);
}

// The reader is gone: its work stops within a step. Not under the lock, which whoever writes a long
// answer holds for as long: this runs on a connection's thread.
void Generation::abandon() {
    if (!is_over_.exchange(true)) cancel_all();
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
