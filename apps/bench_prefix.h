#pragma once
// The part of bench engine that measures decode steps over a shared prefix. One thread.

#include <cstdint>
#include <vector>

#include "bench_baseline.h"
#include "command.h"
#include "model_session.h"

namespace pagoda::apps {

// What --shared-prefix and its companions say.
struct PrefixBench {
    std::int64_t repeat = 0;
    std::int64_t step_tokens = 0;  // max_num_batched_tokens
    std::vector<std::int64_t> prefixes, outputs, concurrencies;
};

// Measures every combination that the KV cache has room for, and prints step times and bounds.
[[nodiscard]] ExitCode run_prefix_bench(const PrefixBench& bench, ModelSession& session,
                                        BenchBaseline& baseline, bool as_json);

}  // namespace pagoda::apps
