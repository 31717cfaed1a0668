#pragma once
// Planner: makes one StepPlan from a state that it only reads. Phases: running sequences in order
// of rank, where the last yields when blocks run out; then admission of waiting ones; then the rows
// in the executor's order. Lives on the stack of Scheduler::plan().

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kv/index/block_pool.h"
#include "kv/index/prefix_index.h"
#include "sched/forecast.h"
#include "sched/policy/policy.h"
#include "sched/sequence.h"
#include "sched/step_cost.h"

namespace pagoda::sched {

struct PlannerInput {
    const SchedulerConfig& config;
    const std::deque<kv::BlockPool>& pools;  // by group
    const kv::PrefixIndex& index;
    std::span<const Sequence* const> running;  // by rank
    std::span<const base::SeqId> ended;
    const Policy& policy;
    const OutputForecast& forecast;
    const StepCost& cost;
    std::uint64_t step = 0;
};

class Planner final {
  public:
    explicit Planner(const PlannerInput& input);
    [[nodiscard]] StepPlan plan();

  private:
    // The blocks of one group that can be had, as this plan would use them up: free ones, then
    // cached ones, then those of sequences that this plan preempts.
    struct FreeBlocks {
        const kv::BlockPool& pool;
        std::optional<base::BlockId> next_free;  // of the pool's own list
        std::int64_t num_free = 0;               // from there on
        std::optional<base::BlockId> next_cached;
        std::int64_t num_cached = 0;                // from there on, without claimed ones
        std::unordered_set<base::BlockId> claimed;  // cached, wanted by a sequence that starts
        std::deque<base::BlockId> given_back;
        std::unordered_map<base::BlockId, std::int32_t> num_dropped;  // references, by preemption
        // Blocks that decoding sequences later in the order must get: prefill leaves them alone.
        std::int64_t num_spoken_for = 0;

        [[nodiscard]] std::int64_t count() const {
            return num_free + num_cached + std::ssize(given_back);
        }
        [[nodiscard]] bool can_claim(base::BlockId id) const {
            return pool.is_cached(id) && !claimed.contains(id);
        }
        void claim(base::BlockId id);
        void give_back(const kv::BlockTable& table);
        struct Taken {
            base::BlockId block;
            bool was_free = false;
        };
        [[nodiscard]] Taken take();
    };
    // A sequence whose prefill goes on in this step, and the block that it will publish next.
    struct Prefill {
        const Sequence* sequence;
        std::int64_t next_block;
        bool is_new;  // starts in this plan
    };
    // What a sequence that may start begins with.
    struct Start {
        kv::PrefixMatch match;
        std::int64_t num_tokens = 0;  // to compute after it
        FutureDemand::Item demand;
    };

    void plan_running();
    void limit_prefill(const StepShape& decoding);
    // Of `wanted` prefill tokens from position `first` on, those that this step has time for.
    [[nodiscard]] std::int64_t tokens_in_time(std::int64_t first, std::int64_t wanted) const;
    [[nodiscard]] bool has_prefill_left() const;
    void spend(std::int64_t first, std::int64_t tokens);
    void plan_one_running(std::size_t index);
    void preempt_last();
    void plan_admissions();
    [[nodiscard]] std::optional<Start> may_start(const Sequence& sequence) const;
    void add_running_prefills();
    [[nodiscard]] bool is_being_computed(const Sequence& sequence) const;
    [[nodiscard]] kv::PrefixMatch find_prefix(const Sequence& sequence) const;
    [[nodiscard]] std::int64_t tokens_that_fit_after(const Sequence& sequence,
                                                     const kv::PrefixMatch& match) const;
    void start(const Sequence& sequence, const Start& start);
    [[nodiscard]] base::BlockId take_block(std::size_t group);
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
    void add_running_demand();
    [[nodiscard]] std::int64_t tokens_in_use(const kv::PrefixMatch& match) const;
    [[nodiscard]] bool demand_fits(const FutureDemand::Item& candidate) const;

    const PlannerInput& input_;
    std::vector<FreeBlocks> free_;
    kv::TakenBlocks taken_;            // of the cache, by this plan
    std::size_t num_kept_;             // running sequences that are not preempted
    std::int64_t prefill_budget_ = 0;  // tokens left beside those of decoding sequences
    // Seconds left for prefill; none: nobody decodes, or the cost of steps is not known.
    std::optional<double> prefill_time_;
    bool is_short_of_blocks_ = false;
    FutureDemand demand_;  // of running and admitted sequences, for admission
    std::vector<const Sequence*> unfit_;
    std::vector<Prefill> prefills_;
    std::vector<SequencePlan> decode_rows_, prefill_rows_;
    StepPlan plan_;
};

}  // namespace pagoda::sched
