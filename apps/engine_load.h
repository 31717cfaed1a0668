#pragma once
// A load on the engine of this process, and how fast it is worked off: what bench engine measures.
// Called from one thread.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"

namespace pagoda::apps {

struct LoadShape {
    std::int64_t concurrency = 1;
    std::int64_t prompt_tokens = 0;
    std::int64_t output_tokens = 1;  // of one sequence, at most
    std::uint64_t seed = 1;          // of the random prompts
};

// Seconds from submitting that many prompts until all of them gave their first token; each ends
// with it.
[[nodiscard]] base::Result<double> prefill_seconds(engine::Engine& engine, const LoadShape& shape);

// Tokens per second of all sequences together in each of `windows` consecutive windows of
// `window_tokens` tokens a sequence, while all of them decode.
[[nodiscard]] base::Result<std::vector<double>> decode_rates(engine::Engine& engine,
                                                             const LoadShape& shape,
                                                             std::int64_t window_tokens,
                                                             std::int64_t windows);

// Output tokens of one sequence in decode_rates(): the first ones decode while the last are still
// prefilled in steps of `step_tokens`.
[[nodiscard]] std::int64_t decode_output_tokens(const LoadShape& shape, std::int64_t step_tokens,
                                                std::int64_t measured_tokens);

}  // namespace pagoda::apps
