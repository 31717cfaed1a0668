#pragma once
// Executor: runs the steps that the scheduler plans. One seam for a local model, a remote worker
// and a fake. Called by the engine thread alone.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "decode/sampler.h"
#include "decode/sampling_params.h"
#include "decode/stop.h"
#include "sched/step_plan.h"

namespace pagoda::engine {

// What the sequences of a request have in common. Immutable.
struct SequenceInput {
    std::vector<base::TokenId> prompt;
    decode::SamplingParams sampling;
    decode::StopRules stop;
    std::vector<base::TokenId> held_back;  // by min_tokens: all that would end an answer
};

// What an executor needs to know of a sequence, once, with the first plan that has it.
struct NewSequence {
    base::SeqId seq;
    // Owners: the request's sequences, in the engine while they wait, in the executor afterwards.
    std::shared_ptr<const SequenceInput> input;
    std::uint64_t seed = 0;        // of this very sequence
    bool is_prompt_scored = true;  // prompt_logprobs, if asked for, go out with this sequence
};

// What a step says of a sequence beside sched::SequenceResult.
struct SequenceDetails {
    std::vector<decode::TokenLogprob> logprobs;         // of the produced tokens, when asked for
    std::vector<decode::TokenLogprob> prompt_logprobs;  // of the prompt tokens of this step
    std::optional<base::Error> error;                   // with finish kError
};

struct StepOutput {
    sched::StepResult result;
    std::vector<SequenceDetails> details;  // in the plan's order
};

class Executor {
  public:
    virtual ~Executor() = default;
    // REQUIRES: every sequence of the plan is new or was in an earlier plan.
    [[nodiscard]] virtual StepOutput run(const sched::StepPlan& plan,
                                         std::span<NewSequence> new_sequences) = 0;
};

}  // namespace pagoda::engine
