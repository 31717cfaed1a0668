#pragma once
// MemoryPlan: what a model will take on this machine, decided before anything is loaded. Pure
// arithmetic; thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"

namespace pagoda::plan {

// What is planned beside model and KV cache, whatever the model. Whoever is named keeps within it.
struct ProcessShares {
    std::uint64_t queue_bytes = std::uint64_t{24} << 20;   // requests that wait: the engine
    std::uint64_t bodies_bytes = std::uint64_t{32} << 20;  // bodies on their way: the HTTP server
    std::uint64_t small_bodies_bytes = std::uint64_t{8} << 20;  // and their first 64 KiB
    std::uint64_t text_bytes = std::uint64_t{8} << 20;          // connections, output, metrics
    // What the prefix index knows of KV blocks: some 300 bytes for each, up to 40 000 of them.
    // Where there are more, they take gigabytes, and the rest is in the rounding of a page each.
    std::uint64_t index_bytes = std::uint64_t{12} << 20;
    // JSON, templates and tokens of bodies that are being understood, answers that are being
    // written: what the worst known bodies take (tests/e2e/test_memory.py).
    std::uint64_t handling_bytes = std::uint64_t{192} << 20;

    [[nodiscard]] constexpr std::uint64_t sum() const {
        return queue_bytes + bodies_bytes + small_bodies_bytes + text_bytes + index_bytes +
               handling_bytes;
    }
};
inline constexpr ProcessShares kProcessShares;

struct MemoryBudget {
    std::uint64_t limit_bytes = 0;                // what this process may use in all
    double utilization = 0.9;                     // share of the limit for everything
    std::uint64_t in_use_bytes = 0;               // resident before loading
    std::optional<std::uint64_t> kv_cache_bytes;  // overrides what is left for KV
    std::optional<std::int64_t> max_model_len;    // an explicit value is kept or refused
    std::int64_t max_num_seqs = 64;
    std::int64_t max_num_batched_tokens = 512;
};

struct MemoryPlan {
    std::uint64_t limit_bytes = 0;  // limit * utilization
    std::uint64_t weights_bytes = 0;
    std::uint64_t workspace_bytes = 0;
    std::uint64_t other_bytes = 0;  // what was resident before, and the ProcessShares
    std::uint64_t kv_bytes = 0;
    std::vector<std::int64_t> group_blocks;  // KV blocks per group
    std::int64_t kv_tokens = 0;              // positions of the group that sees everything
    std::int64_t max_model_len = 0;
    bool max_model_len_lowered = false;  // from the model's context, to fit
    double full_sequences = 0;           // sequences of max_model_len that fit at once

    // Lines for people: one per part.
    [[nodiscard]] std::string describe() const;
};

// Errors name what does not fit, how much it needs and how much there is, and what to change.
[[nodiscard]] base::Result<MemoryPlan> make_memory_plan(const model::ModelSizes& sizes,
                                                        const MemoryBudget& budget);

}  // namespace pagoda::plan
