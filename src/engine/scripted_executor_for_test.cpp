#include "engine/scripted_executor_for_test.h"

#include <algorithm>
#include <utility>

namespace pagoda::engine {

StepOutput ScriptedExecutor::run(const sched::StepPlan& plan,
                                 std::span<NewSequence> new_sequences) {
    if (holds_.load()) permits_.acquire();
    num_preempted_ += std::ssize(plan.preempted);
    for (NewSequence& incoming : new_sequences) introduce(incoming);
    // One that was cancelled before its first step ended without being introduced.
    sched::StepPlan known = plan;
    std::erase_if(known.ended, [this](base::SeqId seq) { return scripts_.erase(seq) == 0; });
    StepOutput output;
    output.result = books_.run(known);
    output.details.resize(output.result.sequences.size());
    for (std::size_t entry = 0; entry < output.details.size(); ++entry)
        play(output.result.sequences[entry], output.details[entry]);
    if (holds_after_preemption_ && !plan.preempted.empty()) {
        holds_after_preemption_ = false;
        hold_steps();
        preempted_.release();
    }
    return output;
}

void ScriptedExecutor::introduce(NewSequence& incoming) {
    const SequenceInput& input = *incoming.input;
    const std::int64_t num_prompt = std::ssize(input.prompt);
    books_.add({.seq = incoming.seq,
                .num_prompt_tokens = num_prompt,
                .max_total_tokens = num_prompt + input.sampling.max_tokens,
                .prefix = std::make_shared<const kv::PromptKeys>(
                    kv::PromptKeys{.tokens = {incoming.input, &incoming.input->prompt}})},
               input.sampling.max_tokens);
    scripts_[incoming.seq] = {incoming.input, input.prompt, incoming.is_prompt_scored};
}

void ScriptedExecutor::score(const Script& script, base::TokenId token,
                             SequenceDetails& details) const {
    const auto scored = [](base::TokenId chosen, int num_alternatives) {
        decode::TokenLogprob entry{.token = chosen, .logprob = -0.5F};
        for (int place = 0; place < num_alternatives; ++place)
            entry.top.push_back({.token = std::max(chosen - place, 0),
                                 .logprob = -0.5F - static_cast<float>(place)});
        return entry;
    };
    const decode::SamplingParams& sampling = script.input->sampling;
    const std::vector<base::TokenId>& prompt = script.input->prompt;
    if (sampling.logprobs) details.logprobs.push_back(scored(token, *sampling.logprobs));
    const bool is_first_token = script.tokens.size() == prompt.size();
    if (!sampling.prompt_logprobs || !script.is_prompt_scored || !is_first_token) return;
    for (std::size_t position = 1; position < prompt.size(); ++position)
        details.prompt_logprobs.push_back(scored(prompt[position], *sampling.prompt_logprobs));
}

void ScriptedExecutor::play(sched::SequenceResult& result, SequenceDetails& details) {
    Script& script = scripts_.at(result.seq);
    if (failing_ && script.tokens.front() == *failing_) {
        result.tokens.clear();
        result.finish = sched::FinishReason::kError;
        details.error = base::Error{base::ErrorCode::kInternal, "not a number"};
        return;
    }
    if (result.tokens.empty()) return;
    const std::int64_t num_prompt = std::ssize(script.input->prompt);
    const base::TokenId token = next_(script.tokens, num_prompt);
    score(script, token, details);
    script.tokens.push_back(token);
    books_.set_last_token(result.seq, token);
    result.tokens = {token};
    using Verdict = decode::StopRules::Verdict;
    const Verdict verdict = script.input->stop.check(token, std::ssize(script.tokens) - num_prompt);
    result.finish.reset();
    if (verdict == Verdict::kStop) result.finish = sched::FinishReason::kStop;
    if (verdict == Verdict::kLength) result.finish = sched::FinishReason::kLength;
}

}  // namespace pagoda::engine
