#include "engine/loader.h"

#include <utility>

#include "base/check.h"

namespace pagoda::engine {

std::unique_ptr<kv::KvStore> make_kv_store(const model::DecoderSpec& spec, kernels::KvDType dtype,
                                           const std::vector<std::int64_t>& blocks) {
    kv::KvStoreSpec store{.dtype = dtype};
    const std::vector<model::KvGroup> groups = model::kv_groups(spec);
    CHECK(groups.size() == blocks.size(), "a number of blocks for every KV group");
    for (std::size_t group = 0; group < groups.size(); ++group) {
        kv::KvGroup target{.kv_heads = static_cast<std::int32_t>(spec.kv_heads),
                           .head_dim = static_cast<std::int32_t>(spec.head_dim),
                           .num_blocks = blocks[group]};
        for (const std::int64_t layer : groups[group].layers)
            target.layers.push_back(static_cast<int>(layer));
        store.groups.push_back(std::move(target));
    }
    return std::make_unique<kv::KvStore>(store);
}

base::Result<std::unique_ptr<ModelRunner>> load_runner(const formats::Checkpoint& checkpoint,
                                                       const kernels::DeviceContext& device,
                                                       const LoadOptions& options) {
    auto model = model::Model::load(checkpoint, device, options.limits, options.progress);
    if (!model) return std::move(model).error();
    auto store = make_kv_store((*model)->spec(), options.kv_dtype, options.group_blocks);
    return std::make_unique<ModelRunner>(std::move(model).value(), std::move(store), device,
                                         options.limits.max_logit_rows);
}

std::vector<sched::KvGroupSpec> scheduler_groups(const std::vector<model::KvGroup>& groups,
                                                 const std::vector<std::int64_t>& blocks) {
    std::vector<sched::KvGroupSpec> specs;
    for (std::size_t group = 0; group < groups.size(); ++group)
        specs.push_back({.num_blocks = blocks[group], .window = groups[group].window});
    return specs;
}

}  // namespace pagoda::engine
