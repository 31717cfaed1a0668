#pragma once
// Sequence: what the scheduler knows of one sequence, all of it numbers. Owned by the scheduler.

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "kv/index/block_table.h"
#include "kv/index/prefix_index.h"
#include "sched/scheduler.h"

namespace pagoda::sched {

// Who comes first, lower first; fixed at submission, so that who yields to whom never turns round
// and the first of all always advances.
struct SequenceRank {
    std::int64_t key = 0;      // the policy's
    std::uint64_t ticket = 0;  // order of submission
    friend auto operator<=>(const SequenceRank&, const SequenceRank&) = default;
};

struct Sequence {
    SequenceSpec spec;
    SequenceRank rank;
    std::int64_t num_computed = 0;  // positions whose KV is in the tables
    std::int64_t num_total = 0;     // prompt and output tokens so far
    std::int64_t max_computed = 0;  // the most that num_computed ever was
    std::int64_t num_passed = 0;    // how often others were admitted ahead of it
    std::int32_t num_preemptions = 0;
    bool is_running = false;
    std::vector<kv::BlockTable> tables;  // by group
    // For the prefix cache: its tokens, and how far its blocks are published.
    std::optional<kv::TokenChain> chain;
    kv::PrefixCursor cursor;
    std::vector<ReplacedBlock> replaced;  // of which no plan has told the executor

    [[nodiscard]] std::int64_t num_outputs() const { return num_total - spec.num_prompt_tokens; }
    [[nodiscard]] std::int64_t num_behind() const { return num_total - num_computed; }
    [[nodiscard]] bool is_resumed() const { return num_preemptions > 0; }
};

using kv::first_block_needed;

// Blocks that one sequence of `tokens` positions needs in order to advance at all.
[[nodiscard]] constexpr std::int64_t blocks_to_advance(std::int64_t tokens, std::int64_t window) {
    const std::int64_t all = kv::blocks_for(tokens);
    if (window == 0) return all;
    const std::int64_t within = kv::blocks_for(window - 1) + 1;
    return all < within ? all : within;
}

}  // namespace pagoda::sched
