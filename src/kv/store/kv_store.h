#pragma once
// KvStore: the memory that holds the K and V of a model, one mapping per layer, cut into blocks
// of 32 tokens (layout: PagedKvView in kernels/args.h). Which sequence owns a block is kv/index's
// business. Address space is taken by create(), pages come into being when first written:
// memory grows with use up to bytes(), which the plan has accounted for.
// Owned by the worker, which outlives every step; views stay valid as long as the store. The
// thread team reads and writes blocks during a step; copy_block() runs between steps, on the
// engine thread.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "kernels/args.h"
#include "kernels/ops/device_context.h"
#include "tensor/aligned_buffer.h"

namespace pagoda::kv {

// The layers that share block tables: one block id means the same tokens in each of them.
struct KvGroup {
    std::vector<int> layers;  // model layer numbers; a layer belongs to one group
    std::int32_t kv_heads = 0;
    std::int32_t head_dim = 0;  // a multiple of 16
    std::int64_t num_blocks = 0;
};

struct KvStoreSpec {
    kernels::KvDType dtype = kernels::KvDType::kBF16;
    std::vector<KvGroup> groups;
};

class KvStore {
  public:
    // What check_spec() refuses; or kResourceExhausted with the size when the system refuses the
    // address space (RLIMIT_AS, vm.overcommit_memory=2), which no plan can know.
    [[nodiscard]] static base::Result<KvStore> create(const KvStoreSpec& spec);

    [[nodiscard]] kernels::PagedKvView layer_view(int layer) const;
    [[nodiscard]] std::size_t num_groups() const { return group_layers_.size(); }
    // All blocks of all layers.
    [[nodiscard]] std::size_t bytes() const;

    // Copies a block in every layer of a group, before a sequence writes into a shared one.
    void copy_block(std::size_t group, base::BlockId from, base::BlockId to);

  private:
    struct Layer {
        tensor::AlignedBuffer memory;  // [num_blocks][block_bytes]
        kernels::PagedKvView view;
    };
    KvStore() = default;
    // False when the system refuses the memory of a layer.
    [[nodiscard]] bool add_group(kernels::KvDType dtype, const KvGroup& group);
    [[nodiscard]] const Layer& layer(int number) const;

    std::vector<std::optional<Layer>> layers_;    // by layer number; gaps hold no KV
    std::vector<std::vector<int>> group_layers_;  // as in the spec
};

// Names the value and the limit when a store of that shape can't be.
[[nodiscard]] base::Status check_spec(const KvStoreSpec& spec);

// Bytes of one block in all layers of a group. REQUIRES: a group that check_spec() accepts.
[[nodiscard]] std::size_t group_block_bytes(kernels::KvDType dtype, const KvGroup& group);

// kv_cache_dtype of the configuration: the name of a row in kernels/kv_format.h, or "auto", which
// is f32 when activations are not rounded either, and bf16 otherwise.
[[nodiscard]] base::Result<kernels::KvDType> parse_kv_dtype(std::string_view name,
                                                            kernels::ActivationMode activations);
[[nodiscard]] std::string_view kv_dtype_name(kernels::KvDType dtype);

}  // namespace pagoda::kv
