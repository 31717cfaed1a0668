#pragma once
// Loading a model into a local executor: weights, KV memory, runner. Called once, from the thread
// that owns the device context's team until the engine takes over. The checkpoint and what the
// context points to outlive the runner, which borrows from both.

#include <memory>
#include <vector>

#include "base/result.h"
#include "engine/model_runner.h"
#include "formats/checkpoint.h"
#include "model/model.h"
#include "sched/scheduler.h"

namespace pagoda::engine {

struct LoadOptions {
    // What no step exceeds; of the scheduler's limits and the plan's length. The memory plan was
    // made for the same.
    model::ModelLimits limits;
    kernels::KvDType kv_dtype = kernels::KvDType::kBF16;
    // KV blocks of each of model::kv_groups(), from the memory plan; the scheduler gets the same.
    std::vector<std::int64_t> group_blocks;
    // What weights and workspace will take, of the plan too. A system that refuses so much address
    // space is heard of before the first weight is packed. 0: not asked.
    std::uint64_t load_bytes = 0;
    model::LoadProgress progress;  // called on the loading thread
    model::PackedCacheOptions packed_cache;
};

// The KV memory of a model; `blocks` per KV group.
[[nodiscard]] base::Result<std::unique_ptr<kv::KvStore>> make_kv_store(
    const model::DecoderSpec& spec, kernels::KvDType dtype,
    const std::vector<std::int64_t>& blocks);

// Errors name what the file lacks, or the memory that the system refuses.
[[nodiscard]] base::Result<std::unique_ptr<ModelRunner>> load_runner(
    const formats::Checkpoint& checkpoint, const kernels::DeviceContext& device,
    const LoadOptions& options);

// The scheduler's view of the KV groups.
[[nodiscard]] std::vector<sched::KvGroupSpec> scheduler_groups(
    const std::vector<model::KvGroup>& groups, const std::vector<std::int64_t>& blocks);

}  // namespace pagoda::engine
