#pragma once
// Scheduler: decides what each step computes. It sees sequences as numbers, blocks as ids, and no
// clock but the time of a submission. plan() never mutates; commit() applies a plan and its result;
// submit(), cancel() and finish() happen between two steps, never inside one.
// Owned by the engine thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "kv/index/token_chain.h"
#include "sched/step_plan.h"

namespace pagoda::sched {

// One KV group: the layers that share a block table.
struct KvGroupSpec {
    std::int64_t num_blocks = 0;
    std::int64_t window = 0;  // tokens a layer of this group looks back on, 0: all
};

enum class PolicyKind : std::uint8_t { kFcfs, kPriority, kFair };
[[nodiscard]] base::Result<PolicyKind> parse_policy(std::string_view name);
[[nodiscard]] std::string_view policy_name(PolicyKind kind);

struct SchedulerConfig {
    std::int64_t max_num_seqs = 64;             // sequences in one step
    std::int64_t max_num_batched_tokens = 512;  // tokens in one step
    std::int64_t max_queue = 1024;              // sequences that wait for their first step
    std::int64_t max_model_len = 0;             // tokens of one sequence
    PolicyKind policy = PolicyKind::kFair;
    // With kPriority: so much waiting makes up for one class.
    base::Duration priority_aging = std::chrono::seconds(30);
    // While sequences decode, prefill takes no more of a step than makes it last so long, or four
    // times what decoding alone takes, if that is more; by a prediction (step_cost.h). Zero: no
    // limit.
    base::Duration target_itl{};
    std::vector<KvGroupSpec> groups;
    // What hashed the prompts of the sequences that use the prefix cache, for their outputs; none:
    // no prefix cache. Owners: the scheduler and whoever makes the PromptKeys.
    std::shared_ptr<const kv::PrefixHasher> prefix_hasher;
};
// Errors name key, value and limit.
[[nodiscard]] base::Status validate(const SchedulerConfig& config);

struct SequenceSpec {
    base::SeqId seq;
    base::ClientId client;
    std::int64_t num_prompt_tokens = 0;  // >= 1
    std::int64_t max_total_tokens = 0;   // prompt plus output, at most
    std::int32_t priority = 0;           // lower runs first, as in vLLM
    // Tokens of one step, at most (0: the budget alone): prompts whose every row needs logits.
    std::int64_t max_step_tokens = 0;
    // Prompt and scope for the prefix cache; none: this sequence neither reads nor fills it. Tokens
    // are as many as num_prompt_tokens. Owners: the sequences of the request.
    std::shared_ptr<const kv::PromptKeys> prefix;
    // Every row of the prompt is wanted: nothing comes from the cache that it has not computed.
    bool computes_whole_prompt = false;
};

// Whether a sequence could run if it were alone: its length and its KV blocks. Pure, any thread.
// Errors are kResourceExhausted and name both numbers.
[[nodiscard]] base::Status can_ever_run(const SchedulerConfig& config, const SequenceSpec& spec);

struct SchedulerStats {
    std::int64_t num_waiting = 0;    // for their first step
    std::int64_t num_preempted = 0;  // that wait to begin anew
    std::int64_t num_running = 0;
    // Over all groups. Cached blocks are held by nobody and make room when it is needed; the rest
    // is free.
    std::int64_t num_blocks = 0, num_blocks_used = 0, num_blocks_cached = 0;
    double kv_usage = 0;  // blocks used in the fullest group, 0..1
    std::uint64_t num_preemptions = 0;
    std::uint64_t num_computed_tokens = 0;    // KV rows written by all steps
    std::uint64_t num_recomputed_tokens = 0;  // of them, those that had been written before
    std::uint64_t num_cached_tokens = 0;      // KV rows that starting sequences found
    std::uint64_t num_evicted_blocks = 0;
};

class Scheduler {
  public:
    // REQUIRES: validate(config)
    explicit Scheduler(SchedulerConfig config);
    ~Scheduler();
    Scheduler(const Scheduler&) = delete;
    Scheduler& operator=(const Scheduler&) = delete;

    // Several sequences of one request are taken together or not at all. Errors: kResourceExhausted
    // when it could never fit the KV blocks or the model's length (names both numbers),
    // kUnavailable when the queue is full. Preempted sequences wait too and are not in the queue:
    // they were taken before, and must not make a later one be refused that found a place.
    [[nodiscard]] base::Status submit(std::span<const SequenceSpec> sequences, base::TimePoint now);
    // Gives everything back at once; the next plan reports it as ended. Unknown ids are ignored:
    // the sequence may have finished in the meantime.
    void cancel(base::SeqId seq);
    // As cancel, for a sequence whose output ended outside of a step (a stop string): its length
    // is learnt from, as that of one that a step ended.
    void finish(base::SeqId seq);
    // Forgets everything cached. Sequences that run keep their blocks, and publish no more of them.
    void reset_prefix_cache();

    // The next step; empty when there is nothing to do, and never without a sequence while one
    // waits or runs. Within the token budget, max_num_seqs and the free blocks; running sequences
    // that decode come first.
    [[nodiscard]] StepPlan plan() const;
    // REQUIRES: the plan is the one that plan() gave last, with nothing submitted or cancelled
    // since; the result has its sequences in its order.
    void commit(const StepPlan& plan, const StepResult& result);

    [[nodiscard]] bool has_work() const;
    [[nodiscard]] SchedulerStats stats() const;

    // Every invariant, for tests: blocks are free, cached, or referenced once by each table that
    // has them; counts add up.
    void check_invariants() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda::sched
