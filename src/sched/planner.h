#pragma once
// Planner: makes one StepPlan from a state that it only reads. Phases: running sequences in order
// of rank, where the last yields when blocks run out; then admission of waiting ones; then the rows
// in the executor's order. Lives on the stack of Scheduler::plan().

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "kv/index/block_pool.h"
#include "sched/forecast.h"
#include "sched/policy/policy.h"
#include "sched/sequence.h"

namespace pagoda::sched {

struct PlannerInput {
    const SchedulerConfig& config;
    const std::deque<kv::BlockPool>& pools;    // by group
    std::span<const Sequence* const> running;  // by rank
    std::span<const base::SeqId> ended;
    const Policy& policy;
    const OutputForecast& forecast;
    std::uint64_t step = 0;
};

class Planner final {
  public:
    explicit Planner(const PlannerInput& input);
    [[nodiscard]] StepPlan plan();

  private:
    // The free blocks of one group, as this plan would use them up.
    struct FreeBlocks {
        const kv::BlockPool& pool;
        std::optional<base::BlockId> next;      // of the pool's own free list
        std::int64_t num_in_pool = 0;           // from `next` on
        std::vector<base::BlockId> given_back;  // by sequences that this plan preempts
        // Blocks that decoding sequences later in the order must get: prefill leaves them alone.
        std::int64_t num_spoken_for = 0;

        [[nodiscard]] std::int64_t count() const { return num_in_pool + std::ssize(given_back); }
        [[nodiscard]] base::BlockId take();
    };

    void plan_running();
    void plan_one_running(std::size_t index);
    void preempt_last();
    void plan_admissions();
    [[nodiscard]] bool may_start(const Sequence& sequence) const;
    void record_passed_over();

    [[nodiscard]] bool decodes(const Sequence& sequence) const {
        return sequence.num_behind() == 1;
    }
    [[nodiscard]] std::int64_t wanted_tokens(const Sequence& sequence) const;
    // Whether blocks that decoding sequences will need in this step count as free.
    enum class Claims : std::uint8_t { kRespect, kIgnore };
    [[nodiscard]] std::int64_t tokens_that_fit(const Sequence& sequence, std::int64_t wanted,
                                               Claims claims) const;
    void speak_for(const Sequence& sequence, std::int64_t sign);
    void schedule(const Sequence& sequence, std::int64_t num_tokens);
    [[nodiscard]] FutureDemand::Item demand_of(const Sequence& sequence) const;
    [[nodiscard]] bool demand_fits(const FutureDemand::Item& candidate) const;

    const PlannerInput& input_;
    std::vector<FreeBlocks> free_;
    std::size_t num_kept_;             // running sequences that are not preempted
    std::int64_t prefill_budget_ = 0;  // tokens left beside those of decoding sequences
    bool is_short_of_blocks_ = false;
    FutureDemand demand_;  // of running and admitted sequences, for admission
    std::vector<const Sequence*> unfit_;
    std::vector<SequencePlan> decode_rows_, prefill_rows_;
    StepPlan plan_;
};

}  // namespace pagoda::sched
