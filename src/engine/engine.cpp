#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/check.h"
#include "base/thread.h"
#include "sched/step_log.h"
#include "text/detokenizer.h"

namespace pagoda::engine {
namespace {

using base::Error;
using base::ErrorCode;

std::vector<base::TokenId> sorted(std::vector<base::TokenId> ids) {
    std::sort(ids.begin(), ids.end());
    return ids;
}

template <class T>
std::int64_t bytes_of(const std::vector<T>& values) {
    return std::ssize(values) * static_cast<std::int64_t>(sizeof(T));
}

std::int64_t bytes_of(const SequenceInput& input) {
    return bytes_of(input.prompt) + bytes_of(input.sampling.logit_bias) +
           bytes_of(input.sampling.stop_token_ids) + bytes_of(input.stop.stop_tokens) +
           bytes_of(input.held_back);
}

}  // namespace

base::Result<std::unique_ptr<Engine>> Engine::start(EngineParts parts) {
    std::unique_ptr<Engine> engine(new Engine(std::move(parts)));
    if (auto started = engine->pump_.start(); !started) return std::move(started).error();
    auto thread = base::start_thread("pagoda-engine", [started = engine.get()] { started->run(); });
    if (!thread) return std::move(thread).error();
    engine->thread_ = std::move(thread).value();
    return engine;
}

Engine::Engine(EngineParts parts)
    : tokenizer_(*parts.tokenizer),
      vocab_size_(parts.vocab_size),
      config_(parts.scheduler),
      model_name_(parts.model_name),
      logger_(*parts.logger),
      clock_(*parts.clock),
      on_idle_(std::move(parts.on_idle)),
      metrics_(*parts.metrics, parts.model_name, config_),
      admission_(config_.max_queue, parts.max_queue_bytes),
      executor_(std::move(parts.executor)),
      scheduler_(std::move(parts.scheduler)),
      step_log_(std::move(parts.step_log)),
      pump_(tokenizer_, metrics_, [this](base::SeqId seq) {
          static_cast<void>(commands_.try_push(Command(Stopped{seq})));
      }) {
    if (is_logged()) step_log_->add(sched::header_line(config_));
}

Engine::~Engine() {
    drain();
    commands_.close();
    if (thread_.joinable()) thread_.join();
}

base::Status Engine::check(const GenerateRequest& request) const {
    if (request.prompt.empty()) return base::invalid("the prompt is empty", "prompt");
    for (const base::TokenId token : request.prompt) {
        if (token < 0 || token >= vocab_size_)
            return base::invalid(
                fmt::format("token id {} is outside of the vocabulary of {}", token, vocab_size_),
                "prompt");
    }
    if (request.num_choices < 1)
        return base::invalid(fmt::format("n is {}, must be at least 1", request.num_choices), "n");
    if (request.num_choices > config_.max_queue)
        return base::invalid(fmt::format("n is {}, the queue takes {} sequences (max_queue); ask "
                                         "for fewer at a time",
                                         request.num_choices, config_.max_queue),
                             "n");
    if (request.sink == nullptr)
        return Error{ErrorCode::kInternal, "a request has no sink for its events"};
    if (auto valid = decode::validate_stop_strings(request.stop); !valid) return valid;
    const std::span<const base::TokenId> ends = request.sampling.ignore_eos
                                                    ? std::span<const base::TokenId>()
                                                    : tokenizer_.end_of_generation_ids();
    if (auto valid = decode::validate(request.sampling, vocab_size_, ends); !valid) return valid;
    if (auto valid = check_priority(request.priority); !valid) return valid;
    return check_lengths(request);
}

base::Status Engine::check_priority(std::int32_t priority) const {
    if (priority == 0 || config_.policy == sched::PolicyKind::kPriority) return {};
    return base::invalid(fmt::format("priority is {}, and this server schedules by {}, which knows "
                                     "no priorities; leave it out, or start the server with "
                                     "--scheduling-policy {}",
                                     priority, sched::policy_name(config_.policy),
                                     sched::policy_name(sched::PolicyKind::kPriority)),
                         "priority");
}

base::Status Engine::check_lengths(const GenerateRequest& request) const {
    const std::int64_t num_prompt = std::ssize(request.prompt);
    if (request.is_prompt_only && request.sampling.max_tokens != 1)
        return base::invalid(fmt::format("max_tokens must be 1 where the prompt alone is wanted, "
                                         "got {}",
                                         request.sampling.max_tokens),
                             "max_tokens");
    if (const auto fits =
            resolve_max_tokens(request.sampling.max_tokens, num_prompt, config_.max_model_len);
        !fits)
        return fits.error();
    return sched::can_ever_run(config_,
                               {.num_prompt_tokens = num_prompt,
                                .max_total_tokens = num_prompt + request.sampling.max_tokens});
}

std::shared_ptr<const SequenceInput> Engine::make_input(GenerateRequest& request) const {
    decode::StopRules stop{.stop_tokens = sorted(request.sampling.stop_token_ids),
                           .max_tokens = request.sampling.max_tokens};
    if (!request.sampling.ignore_eos) {
        const auto ends = tokenizer_.end_of_generation_ids();
        stop.end_tokens.assign(ends.begin(), ends.end());
    }
    std::vector<base::TokenId> held_back =
        decode::held_back_tokens(request.sampling, stop.end_tokens);
    return std::make_shared<const SequenceInput>(SequenceInput{
        std::move(request.prompt), request.sampling, std::move(stop), std::move(held_back)});
}

// Hashed once, for all that the scheduler will ask of it.
std::shared_ptr<const kv::PromptKeys> Engine::make_prefix(
    const GenerateRequest& request, const std::shared_ptr<const SequenceInput>& input) const {
    if (config_.prefix_hasher == nullptr) return nullptr;
    std::string scope = kv::scope_bytes(
        {.model = model_name_, .client = request.client, .salt = request.cache_salt});
    return std::make_shared<const kv::PromptKeys>(
        config_.prefix_hasher->keys(std::move(scope), {input, &input->prompt}));
}

// What is expensive is made here, on the caller's thread, and once for all sequences.
Engine::Prepared Engine::prepare(GenerateRequest request) const {
    Prepared result{.request = std::move(request)};
    const std::vector<std::string>& stop = result.request.stop;
    if (!stop.empty()) result.stop = std::make_shared<const decode::StopAutomaton>(stop);
    result.input = make_input(result.request);
    result.prefix = make_prefix(result.request, result.input);
    result.load = {
        .num_sequences = result.request.num_choices,
        .bytes = bytes_of(*result.input) + (result.prefix == nullptr ? 0 : result.prefix->bytes()) +
                 (result.stop == nullptr ? 0 : static_cast<std::int64_t>(result.stop->bytes()))};
    return result;
}

Engine::Submit Engine::make_submit(const Prepared& prepared) {
    const GenerateRequest& request = prepared.request;
    Submit command{.request = base::RequestId(next_request_.fetch_add(1)), .name = request.id};
    const std::int64_t num_prompt = std::ssize(prepared.input->prompt);
    const bool is_scored = request.sampling.prompt_logprobs.has_value();
    // Prompts whose every row needs logits go in smaller steps: a row of logits is large.
    constexpr std::int64_t kScoredStepTokens = 64;
    for (int choice = 0; choice < request.num_choices; ++choice) {
        const base::SeqId seq(next_sequence_.fetch_add(1));
        command.specs.push_back(
            {.seq = seq,
             .client = request.client,
             .num_prompt_tokens = num_prompt,
             .max_total_tokens = num_prompt + request.sampling.max_tokens,
             .priority = request.priority,
             .max_step_tokens = is_scored && choice == 0 ? kScoredStepTokens : 0,
             .prefix = prepared.prefix,
             .computes_whole_prompt = is_scored && choice == 0});
        const std::int64_t share = prepared.load.bytes / request.num_choices;
        const std::int64_t others = share * (request.num_choices - 1);
        command.waiting.push_back(
            {.sequence = {.seq = seq,
                          .input = prepared.input,
                          .seed = request.sampling.seed + static_cast<std::uint64_t>(choice),
                          .is_prompt_scored = choice == 0},
             .bytes = choice == 0 ? prepared.load.bytes - others : share});
    }
    return command;
}

base::Result<base::RequestId> Engine::submit(GenerateRequest request) {
    std::vector<GenerateRequest> requests;
    requests.push_back(std::move(request));
    auto ids = submit(std::move(requests));
    if (!ids) return std::move(ids).error();
    return ids->front();
}

base::Result<std::vector<base::RequestId>> Engine::submit(std::vector<GenerateRequest> requests) {
    std::int64_t num_sequences = 0;
    for (const GenerateRequest& request : requests) {
        if (const auto valid = check(request); !valid) return valid.error();
        num_sequences += request.num_choices;
    }
    if (num_sequences > config_.max_queue)
        return base::invalid(
            fmt::format("{} prompts make {} sequences with n, the queue takes {} (max_queue); ask "
                        "for fewer at a time",
                        requests.size(), num_sequences, config_.max_queue),
            "n");
    std::vector<Prepared> prepared;
    prepared.reserve(requests.size());
    Admission::Load load;
    for (GenerateRequest& request : requests) {
        prepared.push_back(prepare(std::move(request)));
        load.num_sequences += prepared.back().load.num_sequences;
        load.bytes += prepared.back().load.bytes;
    }
    if (auto entered = admission_.enter(load); !entered) return std::move(entered).error();
    std::vector<base::RequestId> ids;
    ids.reserve(prepared.size());
    for (const Prepared& one : prepared) ids.push_back(launch(one));
    return ids;
}

// REQUIRES: it was admitted. An engine that was stopped in the meantime ends it as it ends others.
base::RequestId Engine::launch(const Prepared& prepared) {
    const GenerateRequest& request = prepared.request;
    const std::vector<base::TokenId>& prompt = prepared.input->prompt;
    Submit command = make_submit(prepared);
    const base::RequestId id = command.request;
    const std::vector<base::TokenId> tail =
        text::visible_tail(tokenizer_, prompt, request.skip_special_tokens);
    for (int choice = 0; choice < request.num_choices; ++choice) {
        pump_.add({.seq = command.specs[static_cast<std::size_t>(choice)].seq,
                   .choice = choice,
                   .num_prompt_tokens = std::ssize(prompt),
                   .is_looked_up =
                       prepared.prefix != nullptr && !request.sampling.prompt_logprobs.has_value(),
                   .prompt_tail = tail,
                   .stop = prepared.stop,
                   .min_tokens = request.sampling.min_tokens,
                   .include_stop_string = request.include_stop_string,
                   .skip_special_tokens = request.skip_special_tokens,
                   .is_prompt_only = request.is_prompt_only,
                   .sink = request.sink,
                   .submitted = clock_.now()});
    }
    const std::vector<sched::SequenceSpec> specs = command.specs;
    if (!commands_.try_push(Command(std::move(command)))) {
        for (const sched::SequenceSpec& spec : specs) pump_.end(spec.seq, FinishReason::kAborted);
        admission_.leave_queue(prepared.load);
        leave(prepared.load.num_sequences);
    }
    return id;
}

void Engine::cancel(base::RequestId request) {
    static_cast<void>(commands_.try_push(Command(Cancel{request})));
}

void Engine::abort_all() {
    static_cast<void>(commands_.try_push(Command(AbortAll{})));
}

void Engine::reset_prefix_cache() {
    static_cast<void>(commands_.try_push(Command(ResetPrefixCache{})));
}

double Engine::seconds_in_step() const {
    const std::lock_guard lock(step_mutex_);
    if (!step_began_) return 0;
    return std::chrono::duration<double>(clock_.now() - *step_began_).count();
}

void Engine::set_step_began(std::optional<base::TimePoint> began) {
    const std::lock_guard lock(step_mutex_);
    step_began_ = began;
}

void Engine::run() {
    while (true) {
        take_commands();
        if (commands_.is_closed()) break;
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
    const base::TimePoint now = clock_.now();
    const base::Status taken = scheduler_.submit(command.specs, now);
    // check() and the admission saw to it: its caller was told that it is taken.
    CHECK(taken.ok(), taken.error().message);
    if (is_logged()) step_log_->add(sched::submit_line(command.specs, now));
    Running& running = requests_[command.request];
    running.name = std::move(command.name);
    for (Waiting& waiting : command.waiting) {
        const base::SeqId seq = waiting.sequence.seq;
        running.sequences.push_back(seq);
        request_of_.emplace(seq, command.request);
        waiting_.emplace(seq, std::move(waiting));
    }
}

void Engine::handle(Cancel& command) {
    const auto found = requests_.find(command.request);
    if (found == requests_.end()) return;
    const std::vector<base::SeqId> ids = found->second.sequences;
    for (const base::SeqId seq : ids) {
        scheduler_.cancel(seq);
        if (is_logged()) step_log_->add(sched::cancel_line(seq));
        pump_.end(seq, FinishReason::kAborted);
        forget(seq);
    }
}

void Engine::handle(AbortAll&) {
    while (!requests_.empty()) {
        Cancel cancel{requests_.begin()->first};
        handle(cancel);
    }
}

void Engine::handle(ResetPrefixCache&) {
    scheduler_.reset_prefix_cache();
    if (is_logged()) step_log_->add(sched::reset_line());
    metrics_.on_cache(scheduler_.stats());
}

void Engine::handle(Stopped& command) {
    if (!request_of_.contains(command.seq)) return;
    scheduler_.finish(command.seq);
    if (is_logged()) step_log_->add(sched::finish_line(command.seq));
    forget(command.seq);
}

void Engine::step() {
    const base::TimePoint began = clock_.now();
    const sched::StepPlan plan = scheduler_.plan();
    if (plan.empty()) {
        commands_.wait();
        return;
    }
    set_step_began(began);
    std::vector<NewSequence> new_sequences = introduce(plan);
    StepOutput output = executor_->run(plan, new_sequences);
    const base::TimePoint ended = clock_.now();
    output.result.took = ended - began;
    scheduler_.commit(plan, output.result);
    set_step_began(std::nullopt);
    if (is_logged()) step_log_->add(sched::step_line(config_, plan, output.result));
    metrics_.on_step(scheduler_.stats(), plan.num_tokens(), ended - began);
    deliver(plan, output, {began, ended});
}

// The sequences of a plan that the executor has not met.
std::vector<NewSequence> Engine::introduce(const sched::StepPlan& plan) {
    std::vector<NewSequence> result;
    for (const sched::SequencePlan& part : plan.sequences) {
        const auto found = waiting_.find(part.seq);
        if (found == waiting_.end()) continue;
        admission_.leave_queue({1, found->second.bytes});
        result.push_back(std::move(found->second.sequence));
        waiting_.erase(found);
    }
    return result;
}

// Under the id that the log of requests has for it.
void Engine::log_fault(base::SeqId seq, const base::Error& error) {
    const auto owner = request_of_.find(seq);
    const std::string line = fmt::format(
        "{}: {}", owner == request_of_.end() ? "?" : requests_[owner->second].name, error.message);
    if (error.code == ErrorCode::kInvalidArgument)
        logger_.debug(line);  // its client's own, who is told
    else
        logger_.error(line);
}

void Engine::deliver(const sched::StepPlan& plan, StepOutput& output, const StepTimes& times) {
    std::vector<SequenceOutput> outputs;
    outputs.reserve(output.result.sequences.size());
    for (std::size_t entry = 0; entry < output.result.sequences.size(); ++entry) {
        sched::SequenceResult& result = output.result.sequences[entry];
        if (output.details[entry].error) log_fault(result.seq, *output.details[entry].error);
        outputs.push_back({.seq = result.seq,
                           .tokens = std::move(result.tokens),
                           .details = std::move(output.details[entry]),
                           .finish = result.finish,
                           .first_position = plan.sequences[entry].first_position,
                           .step_began = times.began,
                           .step_ended = times.ended});
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
    const auto request = requests_.find(owner->second);
    std::erase(request->second.sequences, seq);
    if (request->second.sequences.empty()) requests_.erase(request);
    request_of_.erase(owner);
    if (const auto waits = waiting_.find(seq); waits != waiting_.end()) {
        admission_.leave_queue({1, waits->second.bytes});
        waiting_.erase(waits);
    }
    leave(1);
}

void Engine::leave(std::int64_t num_sequences) {
    if (admission_.leave(num_sequences) && on_idle_) on_idle_();
}

}  // namespace pagoda::engine
