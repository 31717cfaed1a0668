#pragma once
// StepPlan and StepResult: the seam between the scheduler and an executor. Plain numbers, so that
// a remote worker is the same interface. There is no prefill and no decode phase: each sequence has
// computed tokens and total tokens, and a step lets the first catch up with the second. Value
// types: nothing in them is borrowed, so that they can be kept, compared, written out and sent.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"

namespace pagoda::sched {

enum class FinishReason : std::uint8_t { kStop, kLength, kAborted, kError };

struct NewBlock {
    std::int32_t group = 0;  // KV group
    base::BlockId block;
    friend bool operator==(const NewBlock&, const NewBlock&) = default;
};

// Of one group, the blocks of a sequence that starts with what the prefix cache had: its table
// begins with them at first_index; those before it are out of the group's window.
struct CachedBlocks {
    std::int64_t first_index = 0;
    std::vector<base::BlockId> blocks;
    friend bool operator==(const CachedBlocks&, const CachedBlocks&) = default;
};

// A block to be copied before anything is computed.
struct BlockCopy {
    std::int32_t group = 0;
    base::BlockId from, to;
    friend bool operator==(const BlockCopy&, const BlockCopy&) = default;
};

// A block with the same content that takes another one's place in a table.
struct ReplacedBlock {
    std::int32_t group = 0;
    std::int64_t index = 0;  // in the table
    base::BlockId block;
    friend bool operator==(const ReplacedBlock&, const ReplacedBlock&) = default;
};

// The part of one sequence that a step computes: positions
// [first_position, first_position + num_tokens).
struct SequencePlan {
    base::SeqId seq;
    std::int64_t first_position = 0;
    std::int64_t num_tokens = 0;
    // The last of these tokens is the sequence's last: its logits give the next token.
    bool is_sampled = false;
    // The sequence begins anew (first step, or after preemption by recompute): its block tables are
    // empty before `cached` and new_blocks are appended.
    bool is_restart = false;
    // With is_restart, by group: [0, first_position) is there already. Empty: nothing is. These
    // blocks are shared, never written to; what first_position leaves of a block is in `copies`.
    std::vector<CachedBlocks> cached;
    std::vector<ReplacedBlock> replaced;  // before new_blocks are appended
    // Appended to the sequence's tables in this order. Tables are indexed by position / 32 in every
    // group; blocks that fell out of a window are never read again.
    std::vector<NewBlock> new_blocks;
    std::vector<BlockCopy> copies;  // to new blocks of its own
    friend bool operator==(const SequencePlan&, const SequencePlan&) = default;
};

// A waiting sequence that does not fit yet, and how many others were admitted ahead of it.
struct PassedOver {
    base::SeqId seq;
    std::int64_t by = 0;
    friend bool operator==(const PassedOver&, const PassedOver&) = default;
};

struct StepPlan {
    std::uint64_t step = 0;
    std::vector<SequencePlan> sequences;  // decode rows first
    // Sequences that ended since the last plan; the executor forgets them before it computes.
    std::vector<base::SeqId> ended;
    // Running sequences that give up their blocks, which this very plan may hand to others. They
    // wait, and begin anew in a later plan (is_restart); the executor keeps their tokens and
    // samplers.
    std::vector<base::SeqId> preempted;
    std::vector<PassedOver> passed_over;
    // Blocks that leave the prefix cache to make room, in this order. The executor need not know.
    std::vector<NewBlock> evicted;

    [[nodiscard]] bool empty() const { return sequences.empty() && ended.empty(); }
    [[nodiscard]] std::int64_t num_tokens() const {
        std::int64_t count = 0;
        for (const SequencePlan& part : sequences) count += part.num_tokens;
        return count;
    }
};

// What a step did to one sequence: the tokens it produced (none unless is_sampled) and
// whether that ended it.
struct SequenceResult {
    base::SeqId seq;
    std::vector<base::TokenId> tokens;
    std::optional<FinishReason> finish;
};

// One entry per sequence of the plan, in the plan's order.
struct StepResult {
    std::uint64_t step = 0;
    std::vector<SequenceResult> sequences;
    base::Duration took{};  // zero: not known
};

}  // namespace pagoda::sched
