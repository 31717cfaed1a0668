#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace pagoda::engine {
namespace {

using base::Error;
using base::ErrorCode;

std::vector<base::TokenId> sorted(std::vector<base::TokenId> ids) {
    std::sort(ids.begin(), ids.end());
    return ids;
}

}  // namespace

Engine::Engine(EngineParts parts)
    : tokenizer_(*parts.tokenizer),
      vocab_size_(parts.vocab_size),
      config_(parts.scheduler),
      logger_(*parts.logger),
      clock_(*parts.clock),
      metrics_(*parts.metrics, parts.model_name),
      executor_(std::move(parts.executor)),
      scheduler_(std::move(parts.scheduler)),
      pump_(tokenizer_, metrics_,
            [this](base::SeqId seq) {
                static_cast<void>(commands_.try_push(Command(Stopped{seq})));
            }),
      thread_([this] { run(); }) {}

Engine::~Engine() {
    drain();
    commands_.close();
    thread_.join();
}

base::Status Engine::check(const GenerateRequest& request) const {
    const auto num_prompt = static_cast<std::int64_t>(request.prompt.size());
    if (num_prompt == 0) return base::invalid("the prompt is empty", "prompt");
    for (const base::TokenId token : request.prompt) {
        if (token < 0 || token >= vocab_size_)
            return base::invalid(
                fmt::format("token id {} is outside of the vocabulary of {}", token, vocab_size_),
                "prompt");
    }
    if (request.sampling.max_tokens > config_.max_model_len - num_prompt)
        return Error{
            ErrorCode::kInvalidArgument,
            fmt::format("the prompt has {} tokens and max_tokens is {}, together more than "
                        "the context of {} tokens",
                        num_prompt, request.sampling.max_tokens, config_.max_model_len),
            "max_tokens"};
    if (request.num_choices < 1)
        return base::invalid(fmt::format("n is {}, must be at least 1", request.num_choices), "n");
    if (auto valid = decode::validate(request.sampling, vocab_size_); !valid) return valid;
    return sched::can_ever_run(config_,
                               {.prompt_tokens = num_prompt,
                                .max_total_tokens = num_prompt + request.sampling.max_tokens});
}

Engine::Submit Engine::make_submit(const GenerateRequest& request, base::RequestId id) {
    Submit command{.request = id};
    const auto num_prompt = static_cast<std::int64_t>(request.prompt.size());
    const decode::SamplingParams& sampling = request.sampling;
    decode::StopRules stop{.stop_tokens = sorted(sampling.stop_token_ids),
                           .max_tokens = sampling.max_tokens};
    if (!sampling.ignore_eos) {
        const auto ends = tokenizer_.end_of_generation_ids();
        stop.end_tokens.assign(ends.begin(), ends.end());
    }
    // Prompts whose every row needs logits go in smaller steps: a row of logits is large.
    constexpr std::int64_t kScoredStepTokens = 64;
    for (int choice = 0; choice < request.num_choices; ++choice) {
        const base::SeqId seq(next_sequence_.fetch_add(1));
        command.specs.push_back(
            {.seq = seq,
             .client = request.client,
             .prompt_tokens = num_prompt,
             .max_total_tokens = num_prompt + sampling.max_tokens,
             .priority = request.priority,
             .max_step_tokens = sampling.prompt_logprobs ? kScoredStepTokens : 0});
        NewSequence sequence{
            .seq = seq, .prompt = request.prompt, .sampling = sampling, .stop = stop};
        sequence.sampling.seed += static_cast<std::uint64_t>(choice);
        if (choice > 0) sequence.sampling.prompt_logprobs.reset();
        command.sequences.push_back(std::move(sequence));
    }
    return command;
}

base::Result<base::RequestId> Engine::submit(const GenerateRequest& request) {
    if (const auto valid = check(request); !valid) return valid.error();
    if (draining()) return Error{ErrorCode::kUnavailable, "the server is shutting down"};
    const std::int64_t count = request.num_choices;
    if (queued_.fetch_add(count) + count > config_.max_queue) {
        queued_.fetch_sub(count);
        return Error{ErrorCode::kUnavailable,
                     fmt::format("the queue is full: max_queue is {}", config_.max_queue)};
    }
    active_.fetch_add(count);

    const base::RequestId id(next_request_.fetch_add(1));
    Submit command = make_submit(request, id);
    for (int choice = 0; choice < request.num_choices; ++choice) {
        const std::size_t index = static_cast<std::size_t>(choice);
        pump_.add({.seq = command.specs[index].seq,
                   .choice = choice,
                   .prompt_tokens = command.specs[index].prompt_tokens,
                   .stop = request.stop,
                   .min_tokens = request.sampling.min_tokens,
                   .include_stop_string = request.include_stop_string,
                   .skip_special_tokens = request.skip_special_tokens,
                   .sink = request.sink,
                   .submitted = clock_.now()});
    }
    const std::vector<sched::SequenceSpec> specs = command.specs;
    if (!commands_.try_push(Command(std::move(command)))) {
        for (const sched::SequenceSpec& spec : specs) pump_.end(spec.seq, FinishReason::kAborted);
        leave_queue(count);
        leave(count);
    }
    return id;
}

void Engine::cancel(base::RequestId request) {
    static_cast<void>(commands_.try_push(Command(Cancel{request})));
}

void Engine::abort_all() {
    static_cast<void>(commands_.try_push(Command(AbortAll{})));
}

void Engine::drain() {
    draining_.store(true, std::memory_order_relaxed);
}

bool Engine::wait_idle(std::chrono::milliseconds at_most) {
    const auto until = std::chrono::steady_clock::now() + at_most;
    std::unique_lock lock(idle_mutex_);
    return idle_.wait_until(lock, until, [this] { return num_active() == 0; });
}

double Engine::seconds_in_step() const {
    const std::int64_t began = step_began_ns_.load(std::memory_order_relaxed);
    if (began == 0) return 0;
    return static_cast<double>(clock_.now().time_since_epoch().count() - began) * 1e-9;
}

void Engine::run() {
    while (true) {
        take_commands();
        if (commands_.closed()) break;
        if (scheduler_.has_work())
            step();
        else
            commands_.wait();
    }
}

void Engine::take_commands() {
    for (Command& command : commands_.drain())
        std::visit([this](auto& content) { handle(content); }, command);
}

void Engine::handle(Submit& command) {
    if (auto taken = scheduler_.submit(command.specs, clock_.now()); !taken) {
        for (const sched::SequenceSpec& spec : command.specs) {
            pump_.end(spec.seq, FinishReason::kError, taken.error());
            leave_queue(1);
            leave(1);
        }
        return;
    }
    std::vector<base::SeqId>& ids = sequences_of_[command.request];
    for (NewSequence& sequence : command.sequences) {
        const base::SeqId seq = sequence.seq;
        ids.push_back(seq);
        request_of_.emplace(seq, command.request);
        unintroduced_.emplace(seq, std::move(sequence));
    }
}

void Engine::handle(Cancel& command) {
    const auto found = sequences_of_.find(command.request);
    if (found == sequences_of_.end()) return;
    const std::vector<base::SeqId> ids = found->second;
    for (const base::SeqId seq : ids) {
        scheduler_.cancel(seq);
        pump_.end(seq, FinishReason::kAborted);
        forget(seq);
    }
}

void Engine::handle(AbortAll&) {
    while (!sequences_of_.empty()) {
        Cancel cancel{sequences_of_.begin()->first};
        handle(cancel);
    }
}

void Engine::handle(Stopped& command) {
    if (!request_of_.contains(command.seq)) return;
    scheduler_.cancel(command.seq);
    forget(command.seq);
}

void Engine::step() {
    const base::TimePoint began = clock_.now();
    const sched::StepPlan plan = scheduler_.plan(began);
    if (plan.empty()) {
        commands_.wait();
        return;
    }
    step_began_ns_.store(began.time_since_epoch().count(), std::memory_order_relaxed);
    std::vector<NewSequence> new_sequences = introduce(plan);
    StepOutput output = executor_->run(plan, new_sequences);
    const base::TimePoint ended = clock_.now();
    scheduler_.commit(plan, output.result, ended);
    step_began_ns_.store(0, std::memory_order_relaxed);
    metrics_.on_step(scheduler_.stats(), plan.num_tokens(), ended - began);
    deliver(output, began, ended);
}

// The sequences of a plan that the executor has not met.
std::vector<NewSequence> Engine::introduce(const sched::StepPlan& plan) {
    std::vector<NewSequence> result;
    for (const sched::SequencePlan& part : plan.sequences) {
        const auto found = unintroduced_.find(part.seq);
        if (found == unintroduced_.end()) continue;
        result.push_back(std::move(found->second));
        unintroduced_.erase(found);
        leave_queue(1);
    }
    return result;
}

void Engine::deliver(StepOutput& output, base::TimePoint began, base::TimePoint ended) {
    std::vector<SequenceOutput> outputs;
    outputs.reserve(output.result.sequences.size());
    for (std::size_t entry = 0; entry < output.result.sequences.size(); ++entry) {
        sched::SequenceResult& result = output.result.sequences[entry];
        if (output.details[entry].error)
            logger_.error(fmt::format("sequence {}: {}", result.seq.value,
                                      output.details[entry].error->message));
        outputs.push_back({.seq = result.seq,
                           .tokens = std::move(result.tokens),
                           .details = std::move(output.details[entry]),
                           .finish = result.finish,
                           .step_began = began,
                           .step_ended = ended});
    }
    std::vector<base::SeqId> done;
    for (const SequenceOutput& sequence : outputs) {
        if (sequence.finish) done.push_back(sequence.seq);
    }
    pump_.push(std::move(outputs));
    for (const base::SeqId seq : done) forget(seq);
}

// The scheduler is done with the sequence.
void Engine::forget(base::SeqId seq) {
    const auto owner = request_of_.find(seq);
    if (owner == request_of_.end()) return;
    const auto siblings = sequences_of_.find(owner->second);
    std::erase(siblings->second, seq);
    if (siblings->second.empty()) sequences_of_.erase(siblings);
    request_of_.erase(owner);
    if (unintroduced_.erase(seq) > 0) leave_queue(1);
    leave(1);
}

void Engine::leave_queue(std::int64_t count) {
    queued_.fetch_sub(count);
}

void Engine::leave(std::int64_t count) {
    {
        const std::lock_guard lock(idle_mutex_);
        active_.fetch_sub(count, std::memory_order_release);
    }
    idle_.notify_all();
}

}  // namespace pagoda::engine
