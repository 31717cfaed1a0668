#include "engine/output_pump.h"

#include <utility>

#include "base/thread.h"
#include "decode/stop.h"
#include "text/detokenizer.h"

namespace pagoda::engine {

struct OutputPump::Output {
    Output(NewOutput&& from, const text::Tokenizer& tokenizer)
        : seq(from.seq),
          choice(from.choice),
          is_looked_up(from.is_looked_up),
          is_prompt_only(from.is_prompt_only),
          min_tokens(from.min_tokens),
          sink(std::move(from.sink)),
          detokenizer(tokenizer, from.skip_special_tokens, from.prompt_tail),
          stop(std::move(from.stop), from.include_stop_string) {
        times.submitted = from.submitted;
        usage.prompt_tokens = from.num_prompt_tokens;
    }

    // Text of the last token that was counted.
    decode::StopStrings::Step look_for_stop(const std::string& text) {
        if (usage.completion_tokens > min_tokens) return stop.append(text);
        return {.text = stop.append_unchecked(text), .match = std::nullopt};
    }

    base::SeqId seq;
    int choice;
    bool is_looked_up;
    bool is_prompt_only;
    std::int64_t min_tokens;
    std::shared_ptr<TokenSink> sink;
    text::Detokenizer detokenizer;
    decode::StopStrings stop;
    std::vector<decode::TokenLogprob> prompt_logprobs;  // until the prompt is done
    Usage usage;
    SequenceTimes times;
};

OutputPump::OutputPump(const text::Tokenizer& tokenizer, EngineMetrics& metrics,
                       std::function<void(base::SeqId)> on_stopped)
    : tokenizer_(tokenizer), metrics_(metrics), on_stopped_(std::move(on_stopped)) {}

OutputPump::~OutputPump() {
    messages_.close();
    if (thread_.joinable()) thread_.join();
}

base::Status OutputPump::start() {
    auto thread = base::start_thread("pagoda-output", [this] { run(); });
    if (!thread) return std::move(thread).error();
    thread_ = std::move(thread).value();
    return {};
}

void OutputPump::add(NewOutput output) {
    // A closed queue means shutdown: the engine refuses requests before it closes the pump.
    static_cast<void>(messages_.try_push(Message(std::move(output))));
}

void OutputPump::push(std::vector<SequenceOutput> step) {
    static_cast<void>(messages_.try_push(Message(std::move(step))));
}

void OutputPump::end(base::SeqId seq, FinishReason reason) {
    static_cast<void>(messages_.try_push(Message(End{seq, reason})));
}

void OutputPump::run() {
    while (std::optional<Message> message = messages_.pop())
        std::visit([this](auto& content) { handle(content); }, *message);
    while (!outputs_.empty()) {
        End rest{outputs_.begin()->first, FinishReason::kAborted};
        handle(rest);
    }
}

void OutputPump::handle(NewOutput& output) {
    const base::SeqId seq = output.seq;
    outputs_.emplace(seq, std::make_unique<Output>(std::move(output), tokenizer_));
}

void OutputPump::handle(std::vector<SequenceOutput>& step) {
    for (SequenceOutput& part : step) {
        // A sequence that a stop string or a cancel ended may still get what was under way.
        const auto found = outputs_.find(part.seq);
        if (found != outputs_.end()) deliver(*found->second, part);
    }
}

void OutputPump::handle(End& end) {
    const auto found = outputs_.find(end.seq);
    if (found == outputs_.end()) return;
    Output& output = *found->second;
    TokenEvent event{.choice = output.choice};
    const decode::StopStrings::Step tail = output.look_for_stop(output.detokenizer.finish());
    event.text = tail.text + (tail.match ? std::string() : output.stop.finish());
    event.finish = end.reason;
    finish(output, std::move(event));
}

void OutputPump::deliver(Output& output, SequenceOutput& step) {
    if (!output.times.first_step) {
        output.times.first_step = step.step_began;
        // The first position that is computed at all: those before it were there.
        output.usage.cached_tokens = step.first_position;
    }
    for (decode::TokenLogprob& entry : step.details.prompt_logprobs)
        output.prompt_logprobs.push_back(std::move(entry));

    TokenEvent event{.choice = output.choice};
    if (step.details.error) {
        event.error = std::move(step.details.error);
        event.finish = FinishReason::kError;
        finish(output, std::move(event));
        return;
    }
    if (step.tokens.empty()) return;
    if (!output.times.first_token) {
        event.prompt_logprobs = std::move(output.prompt_logprobs);
        output.times.first_token = step.step_ended;
        // A prompt is computed and paid for once, however many sequences go on from it.
        if (output.choice == 0) metrics_.on_prompt(output.usage, output.is_looked_up);
        metrics_.on_first_token(output.times);
    } else {
        metrics_.on_token(step.step_ended - *output.times.last_token);
    }
    output.times.last_token = step.step_ended;
    if (output.is_prompt_only)
        event.finish = FinishReason::kLength;
    else
        append_tokens(output, step, event);
    if (event.finish) {
        finish(output, std::move(event));
        return;
    }
    event.usage = output.usage;
    output.sink->on_event(std::move(event));
}

// Text, stop strings and the end of the output.
void OutputPump::append_tokens(Output& output, SequenceOutput& step, TokenEvent& event) {
    for (std::size_t index = 0; index < step.tokens.size(); ++index) {
        const base::TokenId token = step.tokens[index];
        const bool is_last = step.finish && index + 1 == step.tokens.size();
        event.tokens.push_back(token);
        if (index < step.details.logprobs.size())
            event.logprobs.push_back(std::move(step.details.logprobs[index]));
        ++output.usage.completion_tokens;
        metrics_.on_generated(1);

        std::string text;
        if (is_last && *step.finish == FinishReason::kStop)
            event.stop_token = token;  // an end token is no part of the text
        else
            text = output.detokenizer.append(token);
        if (is_last) text += output.detokenizer.finish();
        decode::StopStrings::Step found = output.look_for_stop(text);
        event.text += found.text;
        if (found.match) {
            event.finish = FinishReason::kStop;
            event.stop_string = std::move(found.match);
            event.stop_token.reset();
            if (!step.finish) on_stopped_(output.seq);
            return;
        }
        if (is_last) {
            event.text += output.stop.finish();
            event.finish = step.finish;
        }
    }
}

void OutputPump::finish(Output& output, TokenEvent event) {
    event.usage = output.usage;
    event.timings = timings_of(output.times);
    metrics_.on_finish(*event.finish, output.times, output.usage.completion_tokens);
    const std::shared_ptr<TokenSink> sink = std::move(output.sink);
    outputs_.erase(output.seq);
    sink->on_event(std::move(event));
}

}  // namespace pagoda::engine
