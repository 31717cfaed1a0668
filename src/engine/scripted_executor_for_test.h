#pragma once
// ScriptedExecutor: an executor without a model, for tests of the engine. Its tokens are a function
// of the sequence's tokens alone, so that any schedule must give the same answer; every token has
// the log-probability -0.5, its alternatives are the tokens before it. Blocks and positions go
// through the books of sched::FakeExecutor, which check every plan.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <semaphore>
#include <unordered_map>
#include <vector>

#include "engine/executor.h"
#include "sched/fake_executor_for_test.h"

namespace pagoda::engine {

class ScriptedExecutor final : public Executor {
  public:
    using NextToken = std::function<base::TokenId(const std::vector<base::TokenId>& tokens,
                                                  std::int64_t num_prompt)>;

    // config: the scheduler's.
    ScriptedExecutor(NextToken next, const sched::SchedulerConfig& config)
        : next_(std::move(next)), books_(config) {}

    // Any thread. Each step waits for a release() once this was called.
    void hold_steps() { holds_.store(true); }
    void release(std::ptrdiff_t steps) { permits_.release(steps); }
    // Lets all steps through again.
    void release_all() {
        holds_.store(false);
        permits_.release();
    }
    // Before any request: a sequence whose prompt begins with this token fails in its first step.
    void fail_prompts_with(base::TokenId token) { failing_ = token; }
    // Any thread.
    [[nodiscard]] std::int64_t num_preempted() const { return num_preempted_.load(); }
    // Before any request: steps are held after the first that preempts somebody.
    void hold_after_preemption() { holds_after_preemption_ = true; }
    void wait_for_preemption() { preempted_.acquire(); }

    [[nodiscard]] StepOutput run(const sched::StepPlan& plan,
                                 std::span<NewSequence> new_sequences) override;

  private:
    struct Script {
        std::shared_ptr<const SequenceInput> input;  // owners: see NewSequence
        std::vector<base::TokenId> tokens;
        bool is_prompt_scored = true;
    };
    void introduce(NewSequence& incoming);
    // Log-probabilities as the script's request asks for them, the prompt's with its first token.
    void score(const Script& script, base::TokenId token, SequenceDetails& details) const;
    // Puts the script's token in the place of the books'.
    void play(sched::SequenceResult& result, SequenceDetails& details);

    NextToken next_;
    sched::FakeExecutor books_;
    std::optional<base::TokenId> failing_;
    std::unordered_map<base::SeqId, Script> scripts_;
    std::atomic<std::int64_t> num_preempted_{0};
    std::atomic<bool> holds_{false};
    bool holds_after_preemption_ = false;
    std::binary_semaphore preempted_{0};
    std::counting_semaphore<> permits_{0};
};

}  // namespace pagoda::engine
