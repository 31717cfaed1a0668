// Attention over paged KV. Specification, per query row and head, all in float:
//   score(t)  = (sum over d ascending of q[d] * K[t][d]) * k(t) * scale, then the soft cap
//   chunk     = for the visible keys t of one chunk of kAttentionChunk positions:
//               m = max score, p(t) = exp(score(t) - m), s = sum of p, o = sum of p(t) v(t) * V[t],
//               both sums in ascending order from 0
//   merge     = ascending over chunks with visible keys, from (O, M, S) = (0, -inf, 0):
//               N = max(M, m), O = O exp(M - N) + o exp(m - N), S likewise, M = N
//   sink      = N = max(M, sink), O = O exp(M - N), S = S exp(M - N) + exp(sink - N)
//   out       = O / S
// K and V are the values as stored, k(t) and v(t) their scales in a format that has some, else 1.
// Invisible keys take no part: their K and V are not even read.
// A state is head_dim + 2 floats: o, m, s. s = 0 marks a chunk without visible keys; its other
// values are not read. The merge may stop after any chunk and go on from its state later.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/args.h"
#include "kernels/generic/kv_layout_inl.h"
#include "tensor/half.h"

namespace pagoda::kernels::ref {
namespace {

struct KeyRange {
    std::int64_t begin;
    std::int64_t end;
};

// The keys of a chunk that a query at `position` sees.
KeyRange visible_keys(const AttentionArgs& args, std::int64_t position, std::int64_t chunk) {
    const std::int64_t first = args.window > 0 ? position - args.window + 1 : 0;
    return {.begin = std::max(chunk * kAttentionChunk, first),
            .end = std::min((chunk + 1) * kAttentionChunk, position + 1)};
}

float value_at(KvDType dtype, const std::byte* part, std::size_t offset) {
    if (dtype == KvDType::kF32) return reinterpret_cast<const float*>(part)[offset];
    if (dtype == KvDType::kInt8) return reinterpret_cast<const std::int8_t*>(part)[offset];
    return tensor::bf16_to_float(reinterpret_cast<const std::uint16_t*>(part)[offset]);
}

float scale_at(const PagedKvView& kv, const std::byte* part, std::int32_t slot) {
    if (kv_format(kv.dtype).scale_bytes == 0) return 1;
    return kv_scales(kv.dtype, part, kv.head_dim)[slot];
}

float score(const AttentionArgs& args, const float* q, std::int64_t key) {
    const PagedKvView& kv = args.kv;
    const std::byte* part = k_part(kv, args.block_table[key / kBlockTokens], args.kv_head);
    const auto slot = static_cast<std::int32_t>(key % kBlockTokens);
    float sum = 0;
    for (std::int32_t d = 0; d < kv.head_dim; ++d) {
        sum += q[d] * value_at(kv.dtype, part, k_offset(kv.dtype, kv.head_dim, slot, d));
    }
    sum = sum * scale_at(kv, part, slot) * args.scale;
    return args.soft_cap == 0 ? sum : args.soft_cap * std::tanh(sum / args.soft_cap);
}

void add_weighted_v(const AttentionArgs& args, std::int64_t key, float weight, float* out) {
    const PagedKvView& kv = args.kv;
    const std::byte* part = v_part(kv, args.block_table[key / kBlockTokens], args.kv_head);
    const auto slot = static_cast<std::int32_t>(key % kBlockTokens);
    weight *= scale_at(kv, part, slot);
    for (std::int32_t d = 0; d < kv.head_dim; ++d) {
        out[d] += weight * value_at(kv.dtype, part, v_offset(kv.dtype, kv.head_dim, slot, d));
    }
}

// `weights` has room for kAttentionChunk values.
void reduce_chunk(const AttentionArgs& args, const float* q, KeyRange keys, float* weights,
                  float* state) {
    const std::int64_t dims = args.kv.head_dim;
    std::fill_n(state, dims, 0.0F);
    float max = -std::numeric_limits<float>::infinity();
    float sum = 0;
    for (std::int64_t key = keys.begin; key < keys.end; ++key) {
        weights[key - keys.begin] = score(args, q, key);
        max = std::max(max, weights[key - keys.begin]);
    }
    for (std::int64_t key = keys.begin; key < keys.end; ++key) {
        const float weight = std::exp(weights[key - keys.begin] - max);
        sum += weight;
        add_weighted_v(args, key, weight, state);
    }
    state[dims] = max;
    state[dims + 1] = sum;
}

// `begin` may be null: the state of having seen nothing.
void begin_state(std::int64_t dims, const float* begin, float* state) {
    if (begin != nullptr) {
        std::copy_n(begin, dims + 2, state);
        return;
    }
    std::fill_n(state, dims, 0.0F);
    state[dims] = -std::numeric_limits<float>::infinity();
    state[dims + 1] = 0;
}

void merge_state(std::int64_t dims, const float* chunk, float* state) {
    if (chunk[dims + 1] == 0) return;
    const float max = std::max(state[dims], chunk[dims]);
    const float keep = std::exp(state[dims] - max);
    const float add = std::exp(chunk[dims] - max);
    for (std::int64_t d = 0; d < dims; ++d) state[d] = state[d] * keep + chunk[d] * add;
    state[dims] = max;
    state[dims + 1] = state[dims + 1] * keep + chunk[dims + 1] * add;
}

// `sink` may be null.
void finish_state(std::int64_t dims, const float* sink, const float* state, float* out) {
    float keep = 1;
    float sum = state[dims + 1];
    if (sink != nullptr) {
        const float max = std::max(state[dims], *sink);
        keep = std::exp(state[dims] - max);
        sum = sum * keep + std::exp(*sink - max);
    }
    for (std::int64_t d = 0; d < dims; ++d) out[d] = state[d] * keep / sum;
}

// One query row and head; with partials, `state` holds the first chunk's and the next chunk's
// stands state_step floats behind.
void attend_row(const AttentionArgs& args, std::int64_t row, std::int32_t head) {
    const std::int64_t dims = args.kv.head_dim;
    const std::int64_t state_floats = dims + 2;
    const std::int64_t query_head = std::int64_t{args.kv_head} * args.group + head;
    const std::int64_t place = args.row_index == nullptr ? row : args.row_index[row];
    const std::int64_t state_offset = (row * args.group + head) * state_floats;
    const float* q = args.q + place * args.q_stride + query_head * dims;
    float* weights = args.scratch;
    float* chunk_state = weights + kAttentionChunk;
    float* state = chunk_state + state_floats;
    begin_state(dims, args.begin_state == nullptr ? nullptr : args.begin_state + state_offset,
                state);
    for (std::int64_t chunk = args.chunk_begin; chunk < args.chunk_end; ++chunk) {
        const KeyRange keys = visible_keys(args, args.first_position + row, chunk);
        if (args.partials != nullptr) {
            chunk_state = args.partials + state_offset +
                          (chunk - args.chunk_begin) * args.rows * args.group * state_floats;
            chunk_state[dims + 1] = 0;
        }
        if (keys.begin >= keys.end) continue;
        reduce_chunk(args, q, keys, weights, chunk_state);
        if (args.partials == nullptr) merge_state(dims, chunk_state, state);
    }
    if (args.partials != nullptr) return;
    if (args.end_state != nullptr) {
        std::copy_n(state, state_floats, args.end_state + state_offset);
        return;
    }
    const float* sink = args.sinks == nullptr ? nullptr : args.sinks + query_head;
    finish_state(dims, sink, state, args.out + place * args.out_stride + query_head * dims);
}

}  // namespace

std::size_t attention_scratch_floats(std::int64_t /*rows*/, std::int64_t /*group*/,
                                     std::int64_t head_dim) {
    return static_cast<std::size_t>(kAttentionChunk + 2 * (head_dim + 2));
}

void attention(const AttentionArgs& args) noexcept {
    for (std::int64_t row = 0; row < args.rows; ++row) {
        for (std::int32_t head = 0; head < args.group; ++head) attend_row(args, row, head);
    }
}

void attention_merge(const AttentionMergeArgs& args) noexcept {
    const std::int64_t dims = args.head_dim;
    const std::int64_t chunk_step = args.rows * args.group * (dims + 2);
    for (std::int64_t row = 0; row < args.rows; ++row) {
        for (std::int32_t head = 0; head < args.group; ++head) {
            const std::int64_t query_head = std::int64_t{args.kv_head} * args.group + head;
            const std::int64_t offset = (row * args.group + head) * (dims + 2);
            float* state = args.scratch;
            begin_state(dims, args.begin_state == nullptr ? nullptr : args.begin_state + offset,
                        state);
            const float* chunk = args.partials + offset;
            for (std::int64_t c = 0; c < args.num_chunks; ++c) {
                merge_state(dims, chunk + c * chunk_step, state);
            }
            const float* sink = args.sinks == nullptr ? nullptr : args.sinks + query_head;
            finish_state(dims, sink, state, args.out + row * args.out_stride + query_head * dims);
        }
    }
}

}  // namespace pagoda::kernels::ref
