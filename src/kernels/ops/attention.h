#pragma once
// Paged attention over a batch of sequences. Splits the work over rows, KV heads and, for long
// contexts with few rows, chunks; passes once over blocks that decode rows have in common. Neither
// ever changes a bit. Engine thread only.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops/device_context.h"
#include "kernels/ops/sequence_rows.h"
#include "kernels/ops/shared_prefix.h"
#include "tensor/aligned_buffer.h"

namespace pagoda::kernels {

struct AttentionInputs {
    PagedKvView kv;
    const float* q;  // [rows, heads, head_dim]
    std::int64_t q_stride;
    float* out;  // [rows, heads, head_dim]
    std::int64_t out_stride;
    std::int64_t heads;
    float scale;
    float soft_cap = 0;
    std::int64_t window = 0;
    const float* sinks = nullptr;  // [heads]
    std::span<const SequenceRows> sequences;
};

// Scratch of all threads, partial results and the list of work items; allocated once for the
// largest use, so that a step allocates nothing. One per engine, used by attention() alone.
class AttentionWorkspace {
  public:
    // The largest values of any layer and step. Layers that differ in heads or head_dim share one
    // workspace whose Limits hold the largest of each.
    struct Limits {
        std::int64_t max_rows = 0;  // rows of a step
        std::int64_t max_sequences = 0;
        std::int64_t max_positions = 0;  // tokens of one sequence
        std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
    };
    AttentionWorkspace(const DeviceContext& device, const Limits& limits);
    [[nodiscard]] static std::size_t bytes(const DeviceContext& device, const Limits& limits);

  private:
    friend void attention(const DeviceContext&, const AttentionInputs&, AttentionWorkspace&);
    class Plan;  // of one call

    // A call of the kernel: some rows of a sequence, one KV head, a range of chunks. Items that
    // share partials are pieces of one split item. Or the calls of a run of shared prefixes.
    struct Item {
        const SharedPrefixes::Run* run;  // null: not one; else only kv_head counts
        const SequenceRows* sequence;
        std::int64_t row_begin, rows;  // within the sequence
        std::int32_t kv_head;
        std::int64_t chunk_begin, chunk_end;
        float* partials;  // null: not split
    };

    Limits limits_;
    std::size_t scratch_floats_ = 0;  // of one thread
    std::size_t state_floats_ = 0;    // of one thread
    tensor::AlignedBuffer scratch_;   // [threads][scratch_floats_]
    tensor::AlignedBuffer states_;    // [threads][state_floats_] between the passes of a run
    SharedPrefixes prefixes_;
    tensor::AlignedBuffer partials_;
    std::vector<Item> items_;
    std::vector<Item> merges_;  // split items, whole
};

void attention(const DeviceContext& device, const AttentionInputs& inputs,
               AttentionWorkspace& workspace);

// Writes the K and V of `rows` tokens into their slots.
void kv_write(const DeviceContext& device, const KvWriteArgs& args);

// Bytes of one block of one layer.
[[nodiscard]] std::size_t kv_block_bytes(KvDType dtype, std::int32_t kv_heads,
                                         std::int32_t head_dim);

}  // namespace pagoda::kernels
