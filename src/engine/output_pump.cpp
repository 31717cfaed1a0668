#include "engine/output_pump.h"

#include <utility>

#include "decode/stop.h"
#include "text/detokenizer.h"

namespace pagoda::engine {

struct OutputPump::Choice {
    Choice(NewOutput&& from, const text::Tokenizer& tokenizer)
        : seq(from.seq),
          index(from.choice),
          sink(std::move(from.sink)),
          detokenizer(tokenizer, from.skip_special_tokens),
          stop(std::move(from.stop), from.include_stop_string),
          min_tokens(from.min_tokens) {
        times.submitted = from.submitted;
        usage.prompt_tokens = from.prompt_tokens;
    }

    // Text of the last token that was counted.
    decode::StopStrings::Step look_for_stop(const std::string& text) {
        if (usage.completion_tokens > min_tokens) return stop.append(text);
        return {.text = stop.append_unchecked(text), .match = std::nullopt};
    }

    base::SeqId seq;
    int index;
    std::shared_ptr<TokenSink> sink;
    text::Detokenizer detokenizer;
    decode::StopStrings stop;
    std::int64_t min_tokens;
    std::vector<decode::TokenLogprob> prompt_logprobs;  // until the prompt is done
    Usage usage;
    ChoiceTimes times;
};

OutputPump::OutputPump(const text::Tokenizer& tokenizer, EngineMetrics& metrics,
                       std::function<void(base::SeqId)> on_stopped)
    : tokenizer_(tokenizer),
      metrics_(metrics),
      on_stopped_(std::move(on_stopped)),
      thread_([this] { run(); }) {}

OutputPump::~OutputPump() {
    messages_.close();
    thread_.join();
}

void OutputPump::add(NewOutput output) {
    // A closed queue means shutdown: the engine refuses requests before it closes the pump.
    static_cast<void>(messages_.try_push(Message(std::move(output))));
}

void OutputPump::push(std::vector<SequenceOutput> step) {
    static_cast<void>(messages_.try_push(Message(std::move(step))));
}

void OutputPump::end(base::SeqId seq, FinishReason reason, std::optional<base::Error> error) {
    static_cast<void>(messages_.try_push(Message(End{seq, reason, std::move(error)})));
}

void OutputPump::run() {
    while (std::optional<Message> message = messages_.pop())
        std::visit([this](auto& content) { handle(content); }, *message);
    while (!choices_.empty()) {
        End rest{choices_.begin()->first, FinishReason::kAborted, std::nullopt};
        handle(rest);
    }
}

void OutputPump::handle(NewOutput& output) {
    const base::SeqId seq = output.seq;
    choices_.emplace(seq, std::make_unique<Choice>(std::move(output), tokenizer_));
}

void OutputPump::handle(std::vector<SequenceOutput>& step) {
    for (SequenceOutput& output : step) {
        // A choice that a stop string or a cancel ended may still get what was under way.
        const auto found = choices_.find(output.seq);
        if (found != choices_.end()) deliver(*found->second, output);
    }
}

void OutputPump::handle(End& end) {
    const auto found = choices_.find(end.seq);
    if (found == choices_.end()) return;
    Choice& choice = *found->second;
    TokenEvent event{.choice = choice.index};
    const decode::StopStrings::Step tail = choice.look_for_stop(choice.detokenizer.finish());
    event.text = tail.text + (tail.match ? std::string() : choice.stop.finish());
    event.finish = end.reason;
    event.error = std::move(end.error);
    finish(choice, std::move(event));
}

void OutputPump::deliver(Choice& choice, SequenceOutput& output) {
    if (choice.times.first_step == base::TimePoint{}) choice.times.first_step = output.step_began;
    for (decode::TokenLogprob& entry : output.details.prompt_logprobs)
        choice.prompt_logprobs.push_back(std::move(entry));

    TokenEvent event{.choice = choice.index};
    if (output.details.error) {
        event.error = std::move(output.details.error);
        event.finish = FinishReason::kError;
        finish(choice, std::move(event));
        return;
    }
    if (output.tokens.empty()) return;
    if (choice.usage.completion_tokens == 0) {
        event.prompt_logprobs = std::move(choice.prompt_logprobs);
        choice.times.first_token = output.step_ended;
        metrics_.on_prompt(choice.usage.prompt_tokens);
        metrics_.on_first_token(choice.times);
    } else {
        metrics_.on_token(output.step_ended - choice.times.last_token);
    }
    choice.times.last_token = output.step_ended;
    append_tokens(choice, output, event);
    if (event.finish) {
        finish(choice, std::move(event));
        return;
    }
    event.usage = choice.usage;
    choice.sink->on_event(std::move(event));
}

// Text, stop strings and the end of the output.
void OutputPump::append_tokens(Choice& choice, SequenceOutput& output, TokenEvent& event) {
    for (std::size_t index = 0; index < output.tokens.size(); ++index) {
        const base::TokenId token = output.tokens[index];
        const bool is_last = output.finish && index + 1 == output.tokens.size();
        event.tokens.push_back(token);
        if (index < output.details.logprobs.size())
            event.logprobs.push_back(std::move(output.details.logprobs[index]));
        ++choice.usage.completion_tokens;
        metrics_.on_generated(1);

        std::string text;
        if (is_last && *output.finish == FinishReason::kStop)
            event.stop_token = token;  // an end token is no part of the text
        else
            text = choice.detokenizer.append(token);
        if (is_last) text += choice.detokenizer.finish();
        decode::StopStrings::Step step = choice.look_for_stop(text);
        event.text += step.text;
        if (step.match) {
            event.finish = FinishReason::kStop;
            event.stop_string = std::move(step.match);
            event.stop_token.reset();
            if (!output.finish) on_stopped_(choice.seq);
            return;
        }
        if (is_last) {
            event.text += choice.stop.finish();
            event.finish = output.finish;
        }
    }
}

void OutputPump::finish(Choice& choice, TokenEvent event) {
    event.usage = choice.usage;
    event.timings = timings_of(choice.times);
    metrics_.on_finish(*event.finish, choice.times, choice.usage.completion_tokens);
    const std::shared_ptr<TokenSink> sink = std::move(choice.sink);
    choices_.erase(choice.seq);
    sink->on_event(std::move(event));
}

}  // namespace pagoda::engine
