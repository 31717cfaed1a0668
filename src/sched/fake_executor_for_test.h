#pragma once
// FakeExecutor: an executor without a model, for tests, fuzzing and simulation. It keeps what a
// real one would keep (tokens, tables, and per block which tokens were written to it, after which
// others and under which scope) and CHECKs that every plan makes sense: each position is computed
// in order, and all that its attention reads is there and of exactly this sequence's tokens. Each
// sequence ends after the number of outputs that it was given; an output is a function of the
// tokens before it.
// Owned by one thread.

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "sched/scheduler.h"

namespace pagoda::sched {

class FakeExecutor final {
  public:
    explicit FakeExecutor(const SchedulerConfig& config);

    // Its tokens are those of spec.prefix, or without one some that nobody else has. REQUIRES:
    // num_outputs >= 1
    void add(const SequenceSpec& spec, std::int64_t num_outputs);
    [[nodiscard]] StepResult run(const StepPlan& plan);

    [[nodiscard]] std::int64_t num_known() const { return std::ssize(sequences_); }
    [[nodiscard]] bool knows(base::SeqId seq) const { return sequences_.contains(seq); }
    [[nodiscard]] std::int64_t num_outputs(base::SeqId seq) const;
    [[nodiscard]] const std::vector<base::TokenId>& tokens(base::SeqId seq) const;
    // In place of the output that the last step gave.
    void set_last_token(base::SeqId seq, base::TokenId token);

  private:
    struct State {
        SequenceSpec spec;
        std::int64_t num_outputs = 0;  // when it ends
        std::int64_t num_computed = 0;
        std::vector<base::TokenId> tokens;
        std::vector<base::Hash128> before;               // of scope and tokens before each block
        std::vector<std::vector<base::BlockId>> tables;  // by group and position / 32
    };
    // The first slots of a block: these tokens, after those.
    struct Content {
        base::Hash128 before;
        std::vector<base::TokenId> tokens;
    };

    void hash_blocks(State& state) const;
    void begin_anew(State& state, const SequencePlan& part) const;
    void append_blocks(State& state, const SequencePlan& part);
    void copy_blocks(const SequencePlan& part);
    [[nodiscard]] Content& content(std::size_t group, base::BlockId block);
    void compute(State& state, const SequencePlan& part);
    void check_readable(const State& state, std::size_t group, std::int64_t position) const;
    [[nodiscard]] SequenceResult finish_part(State& state, const SequencePlan& part) const;

    SchedulerConfig config_;
    std::unordered_map<base::SeqId, State> sequences_;
    std::vector<std::vector<Content>> contents_;  // by group and block
};

}  // namespace pagoda::sched
