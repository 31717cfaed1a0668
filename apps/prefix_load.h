#pragma once
// Decode steps of sequences that have a prompt's KV blocks in common, and the least time that
// arithmetic allows them: what bench engine --shared-prefix measures. Plans the steps itself,
// beside the scheduler, and drives the executor with them. One thread.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/executor.h"
#include "kernels/ops/device_context.h"
#include "kernels/roof.h"
#include "matrix_work.h"
#include "model/model.h"

namespace pagoda::apps {

struct PrefixShape {
    std::int64_t prefix_tokens = 0;  // a multiple of the block size
    std::int64_t concurrency = 1;
    std::int64_t steps = 1;  // of one measurement
    std::int64_t repeat = 1;
    std::int64_t step_tokens = 1;  // of prefilling the prefix

    // Positions of one sequence, and KV blocks of one group for all of them.
    [[nodiscard]] std::int64_t length() const;
    [[nodiscard]] std::int64_t num_blocks() const;
};

// Seconds of one step by the roof's clock, for each of `repeat` measurements of `steps` steps. The
// device is the executor's. `first_id` names the first of concurrency + 1 sequences, which have
// ended when the call returns.
[[nodiscard]] base::Result<std::vector<double>> prefix_step_seconds(
    engine::Executor& executor, const PrefixShape& shape, const model::ModelSizes& sizes,
    const kernels::DeviceContext& device, std::uint64_t first_id);

// Every weight, the prefix and each sequence's own KV read once; every product at the peak of its
// arithmetic: int8 or f32 for matrices, f32 for attention.
struct StepBound {
    double read_seconds = 0;
    double arithmetic_seconds = 0;
    // Reading and arithmetic overlap at best.
    [[nodiscard]] double seconds() const {
        return read_seconds > arithmetic_seconds ? read_seconds : arithmetic_seconds;
    }
};
// Of a step in the middle of the measurements.
[[nodiscard]] StepBound prefix_step_bound(const PrefixShape& shape, const MatrixWork& work,
                                          const model::ModelSizes& sizes,
                                          const model::DecoderSpec& spec,
                                          const kernels::Roof& roof);

}  // namespace pagoda::apps
