#include "sched/fake_executor_for_test.h"

#include <algorithm>

#include "base/check.h"
#include "sched/sequence.h"

namespace pagoda::sched {

FakeExecutor::FakeExecutor(const SchedulerConfig& config) : config_(config) {
    for (const KvGroupSpec& group : config.groups) {
        contents_.emplace_back(static_cast<std::size_t>(group.num_blocks));
    }
}

void FakeExecutor::add(const SequenceSpec& spec, std::int64_t num_outputs) {
    CHECK(num_outputs >= 1, "a sequence ends after at least one output");
    State state;
    state.spec = spec;
    state.num_outputs = num_outputs;
    state.num_total = spec.num_prompt_tokens;
    state.tables.resize(contents_.size());
    CHECK(sequences_.emplace(spec.seq, std::move(state)).second, "a sequence was added twice");
}

std::int64_t FakeExecutor::num_outputs(base::SeqId seq) const {
    const State& state = sequences_.at(seq);
    return state.num_total - state.spec.num_prompt_tokens;
}

void FakeExecutor::append_blocks(State& state, const SequencePlan& part) {
    for (const NewBlock& added : part.new_blocks) {
        const auto group = static_cast<std::size_t>(added.group);
        std::vector<base::BlockId>& table = state.tables.at(group);
        contents_[group].at(static_cast<std::size_t>(added.block.value)) = {part.seq,
                                                                            std::ssize(table), 0};
        table.push_back(added.block);
    }
}

void FakeExecutor::check_readable(const State& state, std::size_t group,
                                  std::int64_t position) const {
    const std::int64_t first = first_block_needed(position, config_.groups[group].window);
    for (std::int64_t index = first; index <= position / kv::kBlockTokens; ++index) {
        const base::BlockId block = state.tables[group].at(static_cast<std::size_t>(index));
        const Content& content = contents_[group][static_cast<std::size_t>(block.value)];
        CHECK(content.owner == state.spec.seq && content.index == index,
              "a block that is still read was given to another sequence");
        const std::int64_t written =
            std::min(kv::kBlockTokens, position + 1 - index * kv::kBlockTokens);
        CHECK(content.num_written >= written, "a position is read before it was written");
    }
}

void FakeExecutor::compute(State& state, const SequencePlan& part) {
    const std::int64_t end = part.first_position + part.num_tokens;
    for (std::size_t group = 0; group < contents_.size(); ++group) {
        CHECK(std::ssize(state.tables[group]) == kv::blocks_for(end),
              "the tables do not end where the step does");
        for (std::int64_t position = part.first_position; position < end; ++position) {
            const auto index = static_cast<std::size_t>(position / kv::kBlockTokens);
            const base::BlockId block = state.tables[group][index];
            Content& content = contents_[group][static_cast<std::size_t>(block.value)];
            CHECK(content.owner == part.seq, "a position is written to another sequence's block");
            CHECK(content.num_written == position % kv::kBlockTokens, "positions are not in order");
            ++content.num_written;
        }
        check_readable(state, group, part.first_position);
        check_readable(state, group, end - 1);
    }
    state.num_computed = end;
}

SequenceResult FakeExecutor::finish_part(State& state, const SequencePlan& part) const {
    SequenceResult result;
    result.seq = part.seq;
    CHECK(part.is_sampled == (state.num_computed == state.num_total), "is_sampled is wrong");
    if (!part.is_sampled) return result;
    result.tokens.push_back(static_cast<base::TokenId>(state.num_total));
    ++state.num_total;
    if (state.num_total - state.spec.num_prompt_tokens == state.num_outputs) {
        result.finish = FinishReason::kStop;
    } else if (state.num_total == state.spec.max_total_tokens) {
        result.finish = FinishReason::kLength;
    }
    return result;
}

StepResult FakeExecutor::run(const StepPlan& plan) {
    for (const base::SeqId seq : plan.ended) {
        CHECK(sequences_.erase(seq) == 1, "a sequence that is not known ended");
    }
    CHECK(plan.num_tokens() <= config_.max_num_batched_tokens, "the token budget is exceeded");
    CHECK(std::ssize(plan.sequences) <= config_.max_num_seqs, "too many sequences in a step");
    StepResult result;
    result.step = plan.step;
    for (const SequencePlan& part : plan.sequences) {
        State& state = sequences_.at(part.seq);
        if (part.is_restart) {
            for (std::vector<base::BlockId>& table : state.tables) table.clear();
            state.num_computed = 0;
        }
        CHECK(part.num_tokens > 0 && part.first_position == state.num_computed,
              "a part does not begin where the sequence stands");
        const std::int64_t cap = state.spec.max_step_tokens;
        CHECK(cap == 0 || part.num_tokens <= cap, "a part is larger than its sequence allows");
        append_blocks(state, part);
    }
    // All blocks are dealt before any is written: one block in two tables shows below.
    for (const SequencePlan& part : plan.sequences) {
        State& state = sequences_.at(part.seq);
        compute(state, part);
        result.sequences.push_back(finish_part(state, part));
    }
    return result;
}

}  // namespace pagoda::sched
