#include "engine/loader.h"

#include <utility>

#include <fmt/core.h>

#include "base/byte_size.h"
#include "base/check.h"
#include "model/registry.h"
#include "tensor/aligned_buffer.h"

namespace pagoda::engine {

namespace {

// Taken and given back untouched: no buffer of a load can be refused later, so none has to ask.
base::Status check_address_space(std::uint64_t bytes) {
    if (tensor::AlignedBuffer::try_allocate(bytes)) return {};
    return base::Error{
        base::ErrorCode::kResourceExhausted,
        fmt::format("the system refuses the {} of address space that weights and workspace take; "
                    "raise its limit (ulimit -v, vm.overcommit_memory) or take a smaller model",
                    base::format_byte_size(bytes))};
}

}  // namespace

base::Result<std::unique_ptr<kv::KvStore>> make_kv_store(const model::DecoderSpec& spec,
                                                         kernels::KvDType dtype,
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
    auto made = kv::KvStore::create(store);
    if (!made) return std::move(made).error();
    return std::make_unique<kv::KvStore>(std::move(made).value());
}

base::Result<std::unique_ptr<ModelRunner>> load_runner(const formats::Checkpoint& checkpoint,
                                                       const kernels::DeviceContext& device,
                                                       const LoadOptions& options) {
    const auto spec = model::read_decoder_spec(checkpoint);
    if (!spec) return spec.error();
    auto store = make_kv_store(*spec, options.kv_dtype, options.group_blocks);
    if (!store) return std::move(store).error();
    if (auto status = check_address_space(options.load_bytes); !status)
        return std::move(status).error();
    auto model = model::Model::load(checkpoint, device, options.limits, options.progress,
                                    options.packed_cache);
    if (!model) return std::move(model).error();
    return std::make_unique<ModelRunner>(std::move(model).value(), std::move(store).value(), device,
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
