#pragma once
// FakeExecutor: an executor without a model, for tests of the engine. Its tokens are a function of
// the sequence's tokens alone, so that any schedule must give the same answer. Like the real one
// it keeps tokens and block tables, and checks that plans make sense.

#include <atomic>
#include <functional>
#include <semaphore>
#include <unordered_map>
#include <vector>

#include "base/check.h"
#include "engine/executor.h"

namespace pagoda::engine {

class FakeExecutor final : public Executor {
  public:
    using NextToken = std::function<base::TokenId(const std::vector<base::TokenId>& tokens,
                                                  std::int64_t num_prompt)>;

    explicit FakeExecutor(NextToken next) : next_(std::move(next)) {}

    // Each step waits for a release() once this was called.
    void hold_steps() { holds_.store(true); }
    void release(std::ptrdiff_t steps) { permits_.release(steps); }
    // A step lets its next holder through for good.
    void release_all() {
        holds_.store(false);
        permits_.release();
    }
    // A sequence whose prompt begins with this token fails in its first step.
    void fail_prompts_with(base::TokenId token) { failing_ = token; }
    [[nodiscard]] std::int64_t num_tokens_computed() const { return computed_.load(); }

    [[nodiscard]] StepOutput run(const sched::StepPlan& plan,
                                 std::span<NewSequence> new_sequences) override {
        if (holds_.load()) permits_.acquire();
        for (const base::SeqId seq : plan.ended) sequences_.erase(seq);
        for (NewSequence& incoming : new_sequences) {
            const base::SeqId seq = incoming.seq;
            Sequence& sequence = sequences_[seq];
            sequence.tokens = incoming.prompt;
            sequence.num_prompt = static_cast<std::int64_t>(incoming.prompt.size());
            sequence.stop = incoming.stop;
        }
        StepOutput output;
        output.result.step = plan.step;
        for (const sched::SequencePlan& part : plan.sequences) step(part, output);
        return output;
    }

  private:
    struct Sequence {
        std::vector<base::TokenId> tokens;
        std::int64_t num_prompt = 0;
        std::int64_t computed = 0;
        decode::StopRules stop;
    };

    void step(const sched::SequencePlan& part, StepOutput& output) {
        const auto found = sequences_.find(part.seq);
        CHECK(found != sequences_.end(), "a plan with an unknown sequence");
        Sequence& sequence = found->second;
        if (part.restarts) sequence.computed = 0;
        CHECK(part.first_position == sequence.computed, "positions must be computed in order");
        sequence.computed += part.num_tokens;
        computed_ += part.num_tokens;
        sched::SequenceResult result{.seq = part.seq};
        SequenceDetails details;
        if (failing_ && sequence.tokens.front() == *failing_) {
            result.finish = sched::FinishReason::kError;
            details.error = base::Error{base::ErrorCode::kInternal, "not a number"};
        } else if (part.samples) {
            CHECK(sequence.computed == static_cast<std::int64_t>(sequence.tokens.size()),
                  "only a sequence that has caught up samples");
            const base::TokenId token = next_(sequence.tokens, sequence.num_prompt);
            sequence.tokens.push_back(token);
            result.tokens.push_back(token);
            result.finish = verdict(sequence, token);
        }
        output.result.sequences.push_back(std::move(result));
        output.details.push_back(std::move(details));
    }

    static std::optional<sched::FinishReason> verdict(const Sequence& sequence,
                                                      base::TokenId token) {
        using Verdict = decode::StopRules::Verdict;
        const auto num_output =
            static_cast<std::int64_t>(sequence.tokens.size()) - sequence.num_prompt;
        const Verdict verdict = sequence.stop.check(token, num_output);
        if (verdict == Verdict::kGoOn) return std::nullopt;
        return verdict == Verdict::kStop ? sched::FinishReason::kStop
                                         : sched::FinishReason::kLength;
    }

    NextToken next_;
    std::optional<base::TokenId> failing_;
    std::unordered_map<base::SeqId, Sequence> sequences_;
    std::atomic<std::int64_t> computed_{0};
    std::atomic<bool> holds_{false};
    std::counting_semaphore<> permits_{0};
};

}  // namespace pagoda::engine
