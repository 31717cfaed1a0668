#pragma once
// Arguments of the kernel entry points: plain structs of pointers and sizes, shapes in comments.
// All float buffers are row-major; strides count values. Kernels allocate nothing, keep nothing
// and write only what their outputs name. See kernels.h for the table and its contract.

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace pagoda::kernels {

inline constexpr int kBlockTokens = 32;      // tokens of a KV block
inline constexpr int kAttentionChunk = 128;  // keys are reduced in chunks of this many positions
inline constexpr int kMaxHeadDim = 256;      // head sizes are multiples of 16 up to this
inline constexpr int kActivationGroup = 32;  // int8 activations: values that share a scale
inline constexpr float kTinyActivation = 0x1p-112F;  // below it scale or 127 / largest leave f32
inline constexpr float kTinyKv = 0x1p-90F;           // int8 KV: below it a vector is all zeros

// A weight in a variant's own layout. in_features is the dot product's length (K).
struct PackedWeightView {
    tensor::DType dtype = tensor::DType::kF32;  // the source's type
    std::uint32_t layout = 0;                   // the packing variant's tag; kernels rely on it
    std::int64_t out_features = 0;
    std::int64_t in_features = 0;
    const std::byte* data = nullptr;
};

struct PackArgs {
    tensor::DType dtype;
    std::int64_t out_features, in_features;
    const std::byte* source;  // [out_features] rows as stored in the file
    std::byte* packed;        // packed_bytes() of the whole weight
    std::int64_t column_begin,
        column_end;  // outputs to pack; multiples of tile_columns, or the end
};

struct DequantizeArgs {
    tensor::DType dtype;
    const std::byte* source;  // [rows] consecutive rows as stored
    std::int64_t rows, cols;
    float* out;  // [rows, cols]
};

// int8 activations of a row: codes, scales and code sums, in the variant's layout. The rule, for
// each group of kActivationGroup values by itself, all in f32 with round-to-nearest-even:
//   largest = max |x|;  scale = largest / 127;  code = round(x * (127 / largest));  sum = of codes
// A group whose largest is below kTinyActivation is all zeros. A group with a NaN or an infinity
// has the scale NaN and zero codes, so that every output of that row is NaN, and of no other row.
struct QuantizeArgs {
    const float* in;  // [rows, col_end - col_begin]
    std::int64_t in_stride;
    std::int64_t rows;
    std::int64_t col_begin, col_end;  // of the row's values; multiples of kActivationGroup
    std::byte* out;                   // [rows] of quantized_row_bytes(cols)
    std::int64_t cols;                // of a whole row
};

// out[r, c] = (accumulate ? out[r, c] : 0) + sum_k in[r, k] * w[c, k] + bias[c], for the columns
// of a range. The order of a call's sum depends on the weight's dtype and K alone (ref/linear.cpp);
// a weight that is rounded twice takes two calls (ops/linear.h).
struct LinearArgs {
    PackedWeightView weight;
    const std::byte* in;     // int8: rows of quantized_row_bytes; f32: float rows
    std::int64_t in_stride;  // bytes from row to row
    std::int64_t rows;
    float* out;  // [rows, out_features]
    std::int64_t out_stride;
    const float* bias;  // [out_features] or null
    bool accumulate;
    std::int64_t column_begin, column_end;  // multiples of tile_columns, or the end
};

// out = x / sqrt(mean(x^2) + epsilon) * weight, each row by itself. in may be out.
struct RmsNormArgs {
    const float* in;  // [rows, cols]
    std::int64_t in_stride;
    float* out;
    std::int64_t out_stride;
    const float* weight;  // [cols]
    std::int64_t rows, cols;
    float epsilon;
};

struct LayerNormArgs {
    const float* in;
    std::int64_t in_stride;
    float* out;
    std::int64_t out_stride;
    const float* weight;  // [cols]
    const float* bias;    // [cols] or null
    std::int64_t rows, cols;
    float epsilon;
};

enum class RopeStyle : std::uint8_t {
    kInterleaved,  // pairs (2i, 2i+1): llama GGUF files
    kHalves,       // pairs (i, i + rotary_dim/2): qwen, gemma, ...
};
struct RopeArgs {
    float* x;  // [rows, heads, head_dim], rotated in place
    std::int64_t row_stride;
    std::int64_t rows, heads, head_dim;
    std::int64_t rotary_dim;  // even, <= head_dim
    const float* cos;         // [rows, rotary_dim / 2]
    const float* sin;
    RopeStyle style;
};

enum class GateKind : std::uint8_t { kSilu, kGeluTanh, kGeluErf };
// out = act(gate) * up; up may be null: out = act(gate).
struct GateArgs {
    const float* gate;
    const float* up;
    float* out;
    std::int64_t count;
    GateKind kind;
};

// x = cap * tanh(x / cap), in place; cap > 0.
struct SoftCapArgs {
    float* x;
    std::int64_t count;
    float cap;
};
// x = x + y
struct AddArgs {
    float* x;
    const float* y;
    std::int64_t count;
};

// One layer's KV memory. Block b starts at data + b * block_bytes and holds, for every KV head h,
// first all K parts, then all V parts, each part of kBlockTokens * head_dim values. Four bytes hold
// n = KvFormat::lane_values of them (f32 1, bf16 2, int8 4), which are dims of K and tokens of V:
//   K: [token / 16][dim / n][16 tokens][n dims]   V: [token / n][dim][n tokens]
// so that 16 scores are one vector and P*V is the same kind of dot product. A format with scales
// has them behind the values of each part, [kBlockTokens] floats. Values of slots that were never
// written, or belong to an earlier owner, are arbitrary and may be NaN.
// int8 is the rule of QuantizeArgs over the head_dim values of K (or V) of one token and KV head:
// scale = largest / 127, code = round(x * (127 / largest)); a vector whose largest is below kTinyKv
// is all zeros, one with a NaN or an infinity has the scale NaN and zero codes.
enum class KvDType : std::uint8_t { kF32, kBF16, kInt8 };
struct PagedKvView {
    KvDType dtype = KvDType::kBF16;
    std::int32_t kv_heads = 0;
    std::int32_t head_dim = 0;  // a multiple of 16
    std::int64_t num_blocks = 0;
    std::size_t block_bytes = 0;
    std::byte* data = nullptr;
};

struct KvWriteArgs {
    PagedKvView kv;
    const float* k;  // [rows, kv_heads, head_dim]
    const float* v;
    std::int64_t k_stride, v_stride;  // from row to row
    std::int64_t rows;
    const std::int32_t* blocks;  // [rows] the block of each row's token
    const std::int32_t* slots;   // [rows] its slot there, 0 <= slot < kBlockTokens
};

// One work item: consecutive query rows of one sequence, the query heads of one KV head, and the
// whole chunks [chunk_begin, chunk_end) of that sequence's keys. Row r has position
// first_position + r and sees the keys (p - window, p] (window 0: [0, p]).
// With `partials` null the item merges its chunks into begin_state and writes out, or end_state for
// a later item that goes on from there; else it writes each chunk's state for a later merge.
// Whichever way, by the same variant, the bits are the same. A state is [rows][group][head_dim +
// 2]: sum of weighted V, max (in the variant's own unit), sum of weights; a sum of 0 marks a row
// that has seen nothing. With row_index the rows belong to several sequences that have these chunks
// in common: all of them see every key of every chunk, window is 0, and first_position is the least
// of their positions.
struct AttentionArgs {
    PagedKvView kv;
    const std::int32_t* block_table;  // block of positions [32 i, 32 i + 32)
    const float* q;                   // [rows, heads, head_dim], this item's first row, head 0
    std::int64_t q_stride;
    float* out;  // as q
    std::int64_t out_stride;
    const std::int32_t* row_index;  // [rows] where row r stands in q and out; null: r itself
    std::int64_t rows;
    std::int64_t first_position;
    std::int32_t kv_head;
    std::int32_t group;  // query heads per KV head: heads [kv_head * group, (kv_head + 1) * group)
    float scale;         // positive; scores are q.k * scale,
    float soft_cap;      // then cap * tanh(score / cap) unless cap is 0
    std::int64_t window;
    const float* sinks;  // [heads] or null: a logit per head that takes part in the sum alone
    std::int64_t chunk_begin, chunk_end;
    const float* begin_state;  // of the chunks before chunk_begin; null: nothing was seen there
    float* end_state;          // null: out is written
    float* partials;           // [chunk_end - chunk_begin] states, each of one chunk
    float* scratch;            // attention_scratch_floats() of this thread
};
struct AttentionMergeArgs {
    const float* partials;     // as above, consecutive chunks up to the last with a visible key
    const float* begin_state;  // as above
    std::int64_t num_chunks, rows, head_dim;
    std::int32_t kv_head, group;
    const float* sinks;
    float* out;  // the item's first row, head 0
    std::int64_t out_stride;
    float* scratch;  // attention_scratch_floats() of this thread
};

}  // namespace pagoda::kernels
