#pragma once
// FakeExecutor: an executor without a model, for tests, fuzzing and simulation. It keeps what a
// real one would keep (tables, and per block which sequence's positions were written to it) and
// CHECKs that every plan makes sense: each position is computed in order, with all that its
// attention reads still in place. Each sequence ends after the number of outputs that it was given.
// Owned by one thread.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "sched/scheduler.h"

namespace pagoda::sched {

class FakeExecutor final {
  public:
    explicit FakeExecutor(const SchedulerConfig& config);

    // REQUIRES: num_outputs >= 1
    void add(const SequenceSpec& spec, std::int64_t num_outputs);
    [[nodiscard]] StepResult run(const StepPlan& plan);

    [[nodiscard]] std::int64_t num_known() const { return std::ssize(sequences_); }
    [[nodiscard]] std::int64_t num_outputs(base::SeqId seq) const;

  private:
    struct State {
        SequenceSpec spec;
        std::int64_t num_outputs = 0;  // when it ends
        std::int64_t num_total = 0;
        std::int64_t num_computed = 0;
        std::vector<std::vector<base::BlockId>> tables;  // by group and position / 32
    };
    // Whose positions a block holds: the first num_written slots of the owner's block `index`.
    struct Content {
        base::SeqId owner;
        std::int64_t index = -1;
        std::int64_t num_written = 0;
    };

    void append_blocks(State& state, const SequencePlan& part);
    void compute(State& state, const SequencePlan& part);
    void check_readable(const State& state, std::size_t group, std::int64_t position) const;
    [[nodiscard]] SequenceResult finish_part(State& state, const SequencePlan& part) const;

    SchedulerConfig config_;
    std::unordered_map<base::SeqId, State> sequences_;
    std::vector<std::vector<Content>> contents_;  // by group and block
};

}  // namespace pagoda::sched
