#include "plan/memory_plan.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/byte_size.h"
#include "kernels/args.h"
#include "kv/index/block_pool.h"
#include "sched/sequence.h"

namespace pagoda::plan {
namespace {

using base::Error;
using base::ErrorCode;
using base::format_byte_size;

constexpr std::int64_t kBlock = kv::kBlockTokens;
static_assert(kBlock == kernels::kBlockTokens, "blocks that are planned are blocks that are kept");

// KV blocks of every group when the group that sees everything has `blocks`. A windowed group never
// needs more than lets every sequence advance, and one step's tokens in all.
std::vector<std::int64_t> blocks_of_groups(const model::ModelSizes& sizes,
                                           const MemoryBudget& budget, std::int64_t blocks) {
    std::vector<std::int64_t> result;
    for (const model::KvGroup& group : sizes.groups) {
        std::int64_t count = blocks;
        if (group.window > 0)
            count = std::min(count, budget.max_num_seqs * sched::blocks_to_advance(blocks * kBlock,
                                                                                   group.window) +
                                        kv::blocks_for(budget.max_num_batched_tokens));
        result.push_back(count);
    }
    return result;
}

std::uint64_t bytes_of_blocks(const model::ModelSizes& sizes,
                              const std::vector<std::int64_t>& blocks) {
    std::uint64_t bytes = 0;
    for (std::size_t group = 0; group < blocks.size(); ++group)
        bytes += static_cast<std::uint64_t>(blocks[group]) * sizes.block_bytes[group];
    return bytes;
}

// The most blocks that `bytes` hold, up to `wanted`.
std::int64_t fit_blocks(const model::ModelSizes& sizes, const MemoryBudget& budget,
                        std::uint64_t bytes, std::int64_t wanted) {
    std::int64_t low = 0;
    std::int64_t high = wanted;
    while (low < high) {
        const std::int64_t middle = low + (high - low + 1) / 2;
        if (bytes_of_blocks(sizes, blocks_of_groups(sizes, budget, middle)) <= bytes)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

base::Status set_length(const model::ModelSizes& sizes, const MemoryBudget& budget,
                        std::int64_t blocks, MemoryPlan& plan) {
    const std::int64_t fits = blocks * kBlock;
    const std::int64_t wanted = budget.max_model_len.value_or(sizes.context_length);
    if (wanted > sizes.context_length)
        return base::invalid(fmt::format("max_model_len is {}, the model's context is {} tokens",
                                         wanted, sizes.context_length),
                             "max_model_len");
    if (fits < kBlock)
        return Error{
            ErrorCode::kResourceExhausted,
            fmt::format(
                "no room for KV cache: {} are left after weights ({}) and "
                "workspace ({}), and {} tokens need {}; raise "
                "memory_utilization or the memory limit, or take a smaller model",
                format_byte_size(plan.kv_bytes), format_byte_size(plan.weights_bytes),
                format_byte_size(plan.workspace_bytes), kBlock,
                format_byte_size(bytes_of_blocks(sizes, blocks_of_groups(sizes, budget, 1)))),
            "kv_cache_memory"};
    if (budget.max_model_len && wanted > fits)
        return Error{ErrorCode::kResourceExhausted,
                     fmt::format("max_model_len is {}, the KV cache holds {} tokens in {}; lower "
                                 "max_model_len or raise memory_utilization or kv_cache_memory",
                                 wanted, fits, format_byte_size(plan.kv_bytes)),
                     "max_model_len"};
    plan.max_model_len = std::min(wanted, fits);
    plan.max_model_len_lowered = plan.max_model_len < wanted;
    return {};
}

}  // namespace

base::Result<MemoryPlan> make_memory_plan(const model::ModelSizes& sizes,
                                          const MemoryBudget& budget) {
    MemoryPlan plan;
    plan.limit_bytes =
        static_cast<std::uint64_t>(static_cast<double>(budget.limit_bytes) * budget.utilization);
    plan.weights_bytes = sizes.weights;
    plan.workspace_bytes = sizes.workspace;
    plan.other_bytes = budget.in_use_bytes + kProcessShares.sum();
    const std::uint64_t fixed = plan.weights_bytes + plan.workspace_bytes + plan.other_bytes;
    if (fixed >= plan.limit_bytes)
        return Error{
            ErrorCode::kResourceExhausted,
            fmt::format("the model does not fit: weights {}, workspace {} and {} for the "
                        "process make {}, the limit is {} ({} of {})",
                        format_byte_size(plan.weights_bytes),
                        format_byte_size(plan.workspace_bytes), format_byte_size(plan.other_bytes),
                        format_byte_size(fixed), format_byte_size(plan.limit_bytes),
                        budget.utilization, format_byte_size(budget.limit_bytes)),
            "memory_utilization"};
    const std::uint64_t room = plan.limit_bytes - fixed;
    if (budget.kv_cache_bytes && *budget.kv_cache_bytes > room)
        return Error{ErrorCode::kResourceExhausted,
                     fmt::format("kv_cache_memory is {}, only {} are left beside weights ({}) and "
                                 "workspace ({})",
                                 format_byte_size(*budget.kv_cache_bytes), format_byte_size(room),
                                 format_byte_size(plan.weights_bytes),
                                 format_byte_size(plan.workspace_bytes)),
                     "kv_cache_memory"};
    const std::int64_t length =
        std::min(budget.max_model_len.value_or(sizes.context_length), sizes.context_length);
    const std::int64_t useful = budget.max_num_seqs * kv::blocks_for(length);
    const std::int64_t blocks =
        fit_blocks(sizes, budget, budget.kv_cache_bytes.value_or(room), useful);
    plan.group_blocks = blocks_of_groups(sizes, budget, blocks);
    plan.kv_bytes = budget.kv_cache_bytes.value_or(room);
    if (auto status = set_length(sizes, budget, blocks, plan); !status)
        return std::move(status).error();
    plan.kv_bytes = bytes_of_blocks(sizes, plan.group_blocks);
    plan.kv_tokens = blocks * kBlock;
    plan.full_sequences =
        static_cast<double>(blocks) / static_cast<double>(kv::blocks_for(plan.max_model_len));
    return plan;
}

std::string MemoryPlan::describe() const {
    const std::uint64_t total = weights_bytes + workspace_bytes + other_bytes + kv_bytes;
    std::string text = fmt::format(
        "memory plan: weights {}, workspace {}, KV cache {}, process {}; in all {} of {}\n",
        format_byte_size(weights_bytes), format_byte_size(workspace_bytes),
        format_byte_size(kv_bytes), format_byte_size(other_bytes), format_byte_size(total),
        format_byte_size(limit_bytes));
    text += fmt::format("KV cache: {} tokens, {:.1f} sequences of {} tokens at once", kv_tokens,
                        full_sequences, max_model_len);
    if (max_model_len_lowered)
        text += fmt::format("\nmax_model_len was lowered to {} to fit the memory", max_model_len);
    return text;
}

}  // namespace pagoda::plan
