#include "kv/store/kv_store.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "base/byte_size.h"
#include "base/check.h"
#include "kernels/kv_format.h"
#include "kernels/ops/attention.h"

namespace pagoda::kv {
namespace {

constexpr int kMaxLayers = 4096;
constexpr std::int32_t kMaxKvHeads = 65536;

std::size_t block_bytes(kernels::KvDType dtype, const KvGroup& group) {
    return kernels::kv_block_bytes(dtype, group.kv_heads, group.head_dim);
}

base::Status check_group(const KvGroup& group, std::size_t index) {
    if (group.layers.empty()) return base::invalid(fmt::format("KV group {} has no layers", index));
    if (group.kv_heads < 1 || group.kv_heads > kMaxKvHeads) {
        return base::invalid(fmt::format("KV group {} has {} KV heads; 1 to {} can be had", index,
                                         group.kv_heads, kMaxKvHeads));
    }
    if (group.head_dim < 16 || group.head_dim % 16 != 0 || group.head_dim > kernels::kMaxHeadDim) {
        return base::invalid(
            fmt::format("KV group {} has heads of {} values; multiples of 16 up to {} can be had",
                        index, group.head_dim, kernels::kMaxHeadDim));
    }
    constexpr std::int64_t kMaxBlocks = std::numeric_limits<std::int32_t>::max();
    if (group.num_blocks < 1 || group.num_blocks > kMaxBlocks) {
        return base::invalid(fmt::format("KV group {} has {} blocks; 1 to {} can be had", index,
                                         group.num_blocks, kMaxBlocks));
    }
    return {};
}

base::Error refused_by_system(const KvStoreSpec& spec) {
    std::size_t bytes = 0;
    for (const KvGroup& group : spec.groups)
        bytes += group_block_bytes(spec.dtype, group) * static_cast<std::size_t>(group.num_blocks);
    return {base::ErrorCode::kResourceExhausted,
            fmt::format("the system refuses the {} of address space that the KV cache takes; raise "
                        "its limit (ulimit -v, vm.overcommit_memory), or lower kv_cache_memory, "
                        "max_num_seqs or max_model_len",
                        base::format_byte_size(bytes)),
            "kv_cache_memory"};
}

}  // namespace

base::Status check_spec(const KvStoreSpec& spec) {
    std::vector<bool> seen(kMaxLayers, false);
    std::size_t total = 0;
    for (std::size_t g = 0; g < spec.groups.size(); ++g) {
        const KvGroup& group = spec.groups[g];
        if (base::Status status = check_group(group, g); !status) return status;
        for (const int layer : group.layers) {
            if (layer < 0 || layer >= kMaxLayers) {
                return base::invalid(
                    fmt::format("layer {} of KV group {} is not in [0, {})", layer, g, kMaxLayers));
            }
            const auto number = static_cast<std::size_t>(layer);
            if (seen[number]) {
                return base::invalid(fmt::format("layer {} is in two KV groups", layer));
            }
            seen[number] = true;
            std::size_t bytes = 0;
            if (__builtin_mul_overflow(block_bytes(spec.dtype, group),
                                       static_cast<std::size_t>(group.num_blocks), &bytes) ||
                __builtin_add_overflow(total, bytes, &total)) {
                return base::invalid(fmt::format("{} KV blocks in group {} exceed 64-bit sizes",
                                                 group.num_blocks, g));
            }
        }
    }
    return {};
}

base::Result<KvStore> KvStore::create(const KvStoreSpec& spec) {
    if (base::Status status = check_spec(spec); !status) return std::move(status).error();
    KvStore store;
    for (const KvGroup& group : spec.groups) {
        if (!store.add_group(spec.dtype, group)) return refused_by_system(spec);
    }
    return store;
}

bool KvStore::add_group(kernels::KvDType dtype, const KvGroup& group) {
    group_layers_.push_back(group.layers);
    const std::size_t bytes_per_block = block_bytes(dtype, group);
    for (const int number : group.layers) {
        auto memory = tensor::AlignedBuffer::try_allocate(
            bytes_per_block * static_cast<std::size_t>(group.num_blocks));
        if (!memory) return false;
        const auto index = static_cast<std::size_t>(number);
        if (layers_.size() <= index) layers_.resize(index + 1);
        Layer& layer = layers_[index].emplace();
        layer.memory = std::move(*memory);
        layer.view = {.dtype = dtype,
                      .kv_heads = group.kv_heads,
                      .head_dim = group.head_dim,
                      .num_blocks = group.num_blocks,
                      .block_bytes = bytes_per_block,
                      .data = layer.memory.data()};
    }
    return true;
}

const KvStore::Layer& KvStore::layer(int number) const {
    const bool is_held = number >= 0 && static_cast<std::size_t>(number) < layers_.size() &&
                         layers_[static_cast<std::size_t>(number)].has_value();
    CHECK(is_held, fmt::format("layer {} has no KV", number));
    return *layers_[static_cast<std::size_t>(number)];
}

kernels::PagedKvView KvStore::layer_view(int number) const {
    return layer(number).view;
}

std::size_t KvStore::bytes() const {
    std::size_t total = 0;
    for (const std::optional<Layer>& layer : layers_) {
        if (layer) total += layer->memory.bytes();
    }
    return total;
}

void KvStore::copy_block(std::size_t group, base::BlockId from, base::BlockId to) {
    CHECK(group < group_layers_.size(), fmt::format("no KV group {}", group));
    for (const int number : group_layers_[group]) {
        const kernels::PagedKvView& view = layer(number).view;
        const auto is_block = [&](base::BlockId id) {
            return id.value >= 0 && id.value < view.num_blocks;
        };
        CHECK(is_block(from) && is_block(to),
              fmt::format("blocks {} and {} of {}", from.value, to.value, view.num_blocks));
        if (from == to) continue;
        std::memcpy(view.data + static_cast<std::size_t>(to.value) * view.block_bytes,
                    view.data + static_cast<std::size_t>(from.value) * view.block_bytes,
                    view.block_bytes);
    }
}

std::size_t group_block_bytes(kernels::KvDType dtype, const KvGroup& group) {
    return block_bytes(dtype, group) * group.layers.size();
}

base::Result<kernels::KvDType> parse_kv_dtype(std::string_view name,
                                              kernels::ActivationMode activations) {
    if (name == "auto") {
        return activations == kernels::ActivationMode::kF32 ? kernels::KvDType::kF32
                                                            : kernels::KvDType::kBF16;
    }
    std::string offered = "auto";
    constexpr std::size_t kCount = std::size(kernels::kKvDTypes);
    for (std::size_t i = 0; i < kCount; ++i) {
        const std::string_view known = kv_dtype_name(kernels::kKvDTypes[i]);
        if (name == known) return kernels::kKvDTypes[i];
        offered += fmt::format("{}{}", i + 1 == kCount ? " and " : ", ", known);
    }
    return base::invalid(fmt::format("kv_cache_dtype \"{}\" is not offered; {} are", name, offered),
                         "kv_cache_dtype");
}

std::string_view kv_dtype_name(kernels::KvDType dtype) {
    return kernels::kv_format(dtype).name;
}

}  // namespace pagoda::kv
