#pragma once
// Attention over a vector policy. The query rows of an item and the query heads of its KV head are
// packed as rows (row-major, head within row) and cut into tiles of at most kTileRows; each tile
// passes over a chunk once: scores, weights, weighted sum, merge. The formulas are those of
// ref/attention.cpp with powers of two, so that maxima are scores times log2(e) here; the orders
// of the sums:
//   score   over dims, ascending;  max and sum of a chunk over lanes, then a fixed tree
//   values  over keys, ascending, each row from its own first visible key to its own last
// Scales of a KV format multiply whole scores and weights.
// Keys that a row does not see may be multiplied with its query, their scores are then replaced;
// their V is not touched. Internal linkage.

#include <cstddef>
#include <cstdint>

#include "kernels/args.h"
#include "kernels/generic/attention_tile_inl.h"
#include "kernels/generic/exp_inl.h"

namespace pagoda::kernels {
namespace {  // NOLINT(google-build-namespaces): internal linkage is the point

inline constexpr float kMinusInfinity = -__builtin_huge_valf();
inline constexpr float kLog2E = 0x1.715476p+0F;
inline constexpr int kLineFloats = 16;  // one extra vector, so that whole vectors may be loaded

// Rows of the next tile when n are left: few passes, all of sizes that exist.
template <class V>
constexpr int next_tile_rows(std::int64_t left) {
    constexpr int kRows[] = {0, 1, 2, 3, 4, 3, 6, 4, 4, 6, 6, 6, 12};
    const std::int64_t most = left < V::kTileRows ? left : V::kTileRows;
    return kRows[most];
}

// The scratch of an item of n packed rows.
struct AttentionScratch {
    float* queries;  // [tile][dims][rows of the tile]
    float* values;   // [n][dims]: running weighted sums
    float* maxima;   // [n]
    float* sums;     // [n]
    float* weights;  // [kTileRows][kAttentionChunk]
    float* chunk;    // [kTileRows][dims]
};

template <class V>
constexpr std::size_t scratch_floats(std::int64_t n, std::int64_t dims) {
    return static_cast<std::size_t>(2 * n * dims + 2 * (n + kLineFloats) +
                                    V::kTileRows * (kAttentionChunk + dims));
}

template <class V>
[[gnu::always_inline]] inline AttentionScratch carve_scratch(float* memory, std::int64_t n,
                                                             std::int64_t dims) {
    AttentionScratch scratch;
    scratch.weights = memory;
    scratch.chunk = scratch.weights + V::kTileRows * kAttentionChunk;
    scratch.queries = scratch.chunk + V::kTileRows * dims;
    scratch.values = scratch.queries + n * dims;
    scratch.maxima = scratch.values + n * dims;
    scratch.sums = scratch.maxima + n + kLineFloats;
    return scratch;
}

// Where a packed row's query and result stand.
[[gnu::always_inline]] inline std::int64_t place_of(const AttentionArgs& args,
                                                    std::int64_t packed_row) {
    const std::int64_t row = packed_row / args.group;
    return args.row_index == nullptr ? row : args.row_index[row];
}

// The keys of a chunk that a position sees.
[[gnu::always_inline]] inline ChunkRange visible_range(const AttentionArgs& args,
                                                       std::int64_t position, std::int64_t chunk) {
    const std::int64_t start = chunk * kAttentionChunk;
    std::int64_t begin = args.window > 0 ? position - args.window + 1 - start : 0;
    std::int64_t end = position + 1 - start;
    if (begin < 0) begin = 0;
    if (end > kAttentionChunk) end = kAttentionChunk;
    if (begin >= end) return {0, 0};
    return {static_cast<int>(begin), static_cast<int>(end)};
}

// The smallest range that holds both.
[[gnu::always_inline]] inline ChunkRange hull(ChunkRange a, ChunkRange b) {
    if (a.empty()) return b;
    if (b.empty()) return a;
    return {a.begin < b.begin ? a.begin : b.begin, a.end > b.end ? a.end : b.end};
}

[[gnu::always_inline]] inline ChunkRange overlap(ChunkRange a, ChunkRange b) {
    return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

// One tile of packed rows within an item, and the chunk that it passes over.
struct TileTask {
    const AttentionArgs& args;
    const AttentionScratch& scratch;
    const ChunkBlocks& blocks;
    std::int64_t chunk;
    std::int64_t first;  // packed row
};

// What a score is multiplied with to become a power of two's exponent.
[[gnu::always_inline]] inline float exponent_factor(const AttentionArgs& args) {
    return args.soft_cap == 0 ? args.scale * kLog2E : kLog2E;
}

// score = cap tanh(score scale / cap)
template <class V>
[[gnu::noinline]] void cap_scores(const AttentionArgs& args, ChunkRange range, float* scores) {
    const typename V::F cap = V::set1(args.soft_cap);
    const typename V::F scale = V::set1(args.scale);
    for (int start = range.begin / V::kLanes * V::kLanes; start < range.end; start += V::kLanes) {
        const typename V::F score = V::mul(V::load(scores + start), scale);
        V::store(scores + start, V::mul(cap, tanh<V>(V::div(score, cap))));
    }
}

// Vectors of a chunk's scores that a range reaches; kWhole: all.
template <class V, bool kWhole>
[[gnu::always_inline]] inline ChunkRange score_vectors_of(ChunkRange range) {
    if constexpr (kWhole) return {0, kAttentionChunk / V::kLanes};
    return {range.begin / V::kLanes, (range.end + V::kLanes - 1) / V::kLanes};
}

// x at vector v of a chunk, `other` in the place of what is invisible.
template <class V, bool kWhole>
[[gnu::always_inline]] inline typename V::F visible_only(typename V::F x, ChunkRange range, int v,
                                                         float other) {
    if constexpr (kWhole) return x;
    return V::keep(x, range.begin - v * V::kLanes, range.end - v * V::kLanes, V::set1(other));
}

// The largest score of one row, as an exponent of two.
template <class V, bool kWhole>
[[gnu::always_inline]] inline float largest_score(const float* scores, ChunkRange range,
                                                  float factor) {
    const ChunkRange vectors = score_vectors_of<V, kWhole>(range);
    typename V::F max = V::set1(kMinusInfinity);
#pragma GCC unroll 16
    for (int v = vectors.begin; v < vectors.end; ++v) {
        const typename V::F score = V::load(scores + v * V::kLanes);
        max = V::max(visible_only<V, kWhole>(score, range, v, kMinusInfinity), max);
    }
    return V::reduce_max(max) * factor;
}

// Turns the scores of one row into weights and returns their sum; invisible ones become 0.
template <class V, bool kWhole>
[[gnu::noinline]] float weigh_row(float* scores, ChunkRange range, float factor, float largest) {
    using F = typename V::F;
    const ChunkRange vectors = score_vectors_of<V, kWhole>(range);
    F sum = V::zero();
#pragma GCC unroll 16
    for (int v = vectors.begin; v < vectors.end; ++v) {
        float* place = scores + v * V::kLanes;
        const F exponent = V::fma(V::load(place), V::set1(factor), V::set1(-largest));
        const F weight = visible_only<V, kWhole>(exp2_nonpositive<V>(exponent), range, v, 0);
        V::store(place, weight);
        sum = V::add(sum, weight);
    }
    return V::reduce_add(sum);
}

// Scores of R rows to weights. All maxima come first: they wait for each other, the weights of one
// row for its maximum, and a core looks no further ahead than that.
template <class V, int R>
[[gnu::always_inline]] inline void weigh_tile(const AttentionArgs& args, float* weights,
                                              const ChunkRange (&ranges)[R], float (&maxima)[R],
                                              float (&sums)[R]) {
    const float factor = exponent_factor(args);
    for (int r = 0; r < R; ++r) {
        float* scores = weights + r * kAttentionChunk;
        if (ranges[r].empty()) continue;
        if (args.soft_cap != 0) cap_scores<V>(args, ranges[r], scores);
        maxima[r] = ranges[r].whole() ? largest_score<V, true>(scores, ranges[r], factor)
                                      : largest_score<V, false>(scores, ranges[r], factor);
    }
    for (int r = 0; r < R; ++r) {
        float* scores = weights + r * kAttentionChunk;
        if (ranges[r].empty()) continue;
        sums[r] = ranges[r].whole() ? weigh_row<V, true>(scores, ranges[r], factor, maxima[r])
                                    : weigh_row<V, false>(scores, ranges[r], factor, maxima[r]);
    }
}

// Weights of R rows times the scales of their tokens' V, which is then summed without them.
template <class V, KvDType kType, int R>
[[gnu::always_inline]] inline void scale_weights(const TileTask& task,
                                                 const ChunkRange (&ranges)[R]) {
    for (int r = 0; r < R; ++r) {
        if (ranges[r].empty()) continue;
        float* weights = task.scratch.weights + r * kAttentionChunk;
        const ChunkRange vectors = score_vectors_of<V, false>(ranges[r]);
        for (int v = vectors.begin; v < vectors.end; ++v) {
            float* place = weights + v * V::kLanes;
            const typename V::F scales =
                token_scales<V, kType>(task.blocks.v, v, task.args.kv.head_dim);
            V::store(place, V::mul(V::load(place), scales));
        }
    }
}

// state = state * keep + chunk * add
template <class V>
[[gnu::always_inline]] inline void merge_values(float* state, const float* chunk, float keep,
                                                float add, std::int64_t dims) {
    const typename V::F keeps = V::set1(keep);
    const typename V::F adds = V::set1(add);
    for (std::int64_t d = 0; d < dims; d += V::kLanes) {
        const typename V::F added = V::mul(V::load(chunk + d), adds);
        V::store(state + d, V::fma(V::load(state + d), keeps, added));
    }
}

// Running states of consecutive rows, each value as an array over them.
struct RunningRows {
    float* values;  // [rows][dims]
    float* maxima;
    float* sums;
    std::int64_t dims;
};
[[gnu::always_inline]] inline RunningRows running_rows(const AttentionScratch& scratch,
                                                       std::int64_t row, std::int64_t dims) {
    return {.values = scratch.values + row * dims,
            .maxima = scratch.maxima + row,
            .sums = scratch.sums + row,
            .dims = dims};
}

// Merges the chunk states (max, sum, values) of n <= kLanes rows into running ones; a chunk sum of
// 0 leaves its row alone.
template <class V>
[[gnu::noinline]] void merge_rows(const RunningRows& state, const float* values,
                                  const float* maxima, const float* sums, int rows) {
    using F = typename V::F;
    const F old_max = V::load_n(state.maxima, rows);
    const F chunk_max = V::load_n(maxima, rows);
    const F new_max = V::max(old_max, chunk_max);
    const F keep = exp2_nonpositive<V>(V::sub(old_max, new_max));
    const F add = exp2_nonpositive<V>(V::sub(chunk_max, new_max));
    const F added = V::mul(V::load_n(sums, rows), add);
    const F new_sum = V::fma(V::load_n(state.sums, rows), keep, added);
    float keeps[V::kLanes];
    float adds[V::kLanes];
    float new_maxima[V::kLanes];
    float new_sums[V::kLanes];
    V::store(keeps, keep);
    V::store(adds, add);
    V::store(new_maxima, new_max);
    V::store(new_sums, new_sum);
    for (int r = 0; r < rows; ++r) {
        if (sums[r] == 0) continue;
        merge_values<V>(state.values + r * state.dims, values + r * state.dims, keeps[r], adds[r],
                        state.dims);
        state.maxima[r] = new_maxima[r];
        state.sums[r] = new_sums[r];
    }
}

// `sink` may be null.
template <class V>
[[gnu::noinline]] void finish_row(const RunningRows& state, const float* sink, float* out) {
    float keep = 1;
    float sum = *state.sums;
    if (sink != nullptr) {
        const float exponent = *sink * kLog2E;
        const float max = *state.maxima > exponent ? *state.maxima : exponent;
        keep = V::first(exp2_nonpositive<V>(V::set1(*state.maxima - max)));
        sum = sum * keep + V::first(exp2_nonpositive<V>(V::set1(exponent - max)));
    }
    const typename V::F factor = V::set1(keep / sum);
    for (std::int64_t d = 0; d < state.dims; d += V::kLanes) {
        V::store(out + d, V::mul(V::load(state.values + d), factor));
    }
}

// Writes the chunk states of R rows to the partial results.
template <class V>
[[gnu::noinline]] void write_partials(const TileTask& task, const float* maxima, const float* sums,
                                      int rows) {
    const AttentionArgs& args = task.args;
    const std::int64_t dims = args.kv.head_dim;
    const std::int64_t index =
        (task.chunk - args.chunk_begin) * args.rows * args.group + task.first;
    float* out = args.partials + index * (dims + 2);
    for (int r = 0; r < rows; ++r, out += dims + 2) {
        for (std::int64_t d = 0; d < dims; d += V::kLanes) {
            V::store(out + d, V::load(task.scratch.chunk + r * dims + d));
        }
        out[dims] = maxima[r];
        out[dims + 1] = sums[r];
    }
}

// The weighted sums of R rows that see `ranges`: together where all see the tokens of a step, else
// row by row.
template <class V, KvDType kType, int R>
[[gnu::always_inline]] inline void sum_tile(const TileTask& task, const ChunkRange (&ranges)[R]) {
    const std::int64_t dims = task.args.kv.head_dim;
    const AttentionScratch& scratch = task.scratch;
    for (std::int64_t i = 0; i < R * dims; i += V::kLanes) V::store(scratch.chunk + i, V::zero());
    ChunkRange joint = ranges[0];
    for (const ChunkRange& range : ranges) joint = overlap(joint, range);
    constexpr int kStep = kTokenStep<kType>;
    joint = {(joint.begin + kStep - 1) / kStep * kStep, joint.end / kStep * kStep};
    if (joint.empty()) joint = {kAttentionChunk, kAttentionChunk};
    const auto sum_alone = [&](int r, ChunkRange range) {
        if (range.empty()) return;
        sum_row_alone<V, kType>({.blocks = task.blocks,
                                 .range = range,
                                 .weights = scratch.weights + r * kAttentionChunk,
                                 .out = scratch.chunk + r * dims,
                                 .dims = dims});
    };
    for (int r = 0; r < R; ++r) sum_alone(r, overlap(ranges[r], {0, joint.begin}));
    if (joint.empty()) return;
    sum_values<V, kType, R, tile_vectors<V, R>()>({.blocks = task.blocks,
                                                   .range = joint,
                                                   .weights = scratch.weights,
                                                   .out = scratch.chunk,
                                                   .dims = dims});
    for (int r = 0; r < R; ++r) sum_alone(r, overlap(ranges[r], {joint.end, kAttentionChunk}));
}

template <class V, KvDType kType, int R>
[[gnu::noinline]] void attend_tile(const TileTask& task) {
    const AttentionArgs& args = task.args;
    const AttentionScratch& scratch = task.scratch;
    const std::int64_t dims = args.kv.head_dim;
    ChunkRange ranges[R];
    ChunkRange seen{0, 0};
    for (int r = 0; r < R; ++r) {
        const std::int64_t row = (task.first + r) / args.group;
        ranges[r] = visible_range(args, args.first_position + row, task.chunk);
        seen = hull(seen, ranges[r]);
    }
    float maxima[R] = {};
    float sums[R] = {};
    if (!seen.empty()) {
        constexpr int kVecs = tile_vectors<V, R>();
        constexpr int kTokens = kVecs * V::kLanes;
        const float* queries = scratch.queries + task.first * dims;
        for (int v = seen.begin / kTokens * kVecs; v * V::kLanes < seen.end; v += kVecs) {
            score_vectors<V, kType, R, kVecs>(task.blocks, v, queries, dims, scratch.weights);
        }
        weigh_tile<V, R>(args, scratch.weights, ranges, maxima, sums);
        if constexpr (kv_format(kType).scale_bytes != 0) scale_weights<V, kType, R>(task, ranges);
        sum_tile<V, kType, R>(task, ranges);
    }
    if (args.partials != nullptr) {
        write_partials<V>(task, maxima, sums, R);
    } else if (!seen.empty()) {
        merge_rows<V>(running_rows(scratch, task.first, dims), scratch.chunk, maxima, sums, R);
    }
}

template <class V, KvDType kType>
[[gnu::always_inline]] inline void attend_tile_of(int rows, const TileTask& task) {
    switch (rows) {
        case 1:
            return attend_tile<V, kType, 1>(task);
        case 2:
            return attend_tile<V, kType, 2>(task);
        case 3:
            return attend_tile<V, kType, 3>(task);
        case 4:
            return attend_tile<V, kType, 4>(task);
        case 6:
            return attend_tile<V, kType, 6>(task);
        default:
            break;
    }
    if constexpr (V::kTileRows >= 12) {
        if (rows == 12) attend_tile<V, kType, 12>(task);
    }
}

// Queries of the packed rows, dims before rows within a tile, so that a tile's values of one dim
// are neighbours.
template <class V>
[[gnu::always_inline]] inline void pack_queries(const AttentionArgs& args, std::int64_t n,
                                                float* packed) {
    const std::int64_t dims = args.kv.head_dim;
    for (std::int64_t first = 0; first < n;) {
        const int rows = next_tile_rows<V>(n - first);
        for (int r = 0; r < rows; ++r) {
            const std::int64_t head = args.kv_head * args.group + (first + r) % args.group;
            const float* q = args.q + place_of(args, first + r) * args.q_stride + head * dims;
            for (std::int64_t d = 0; d < dims; ++d) packed[(first * dims) + d * rows + r] = q[d];
        }
        first += rows;
    }
}

// The blocks of a chunk; those that no row sees are replaced by the first that some row sees.
[[gnu::always_inline]] inline ChunkBlocks chunk_blocks(const AttentionArgs& args,
                                                       std::int64_t chunk, ChunkRange seen) {
    ChunkBlocks blocks;
    const int first = seen.begin / kBlockTokens;
    const int last = (seen.end - 1) / kBlockTokens;
    const std::int32_t* table = args.block_table + chunk * kChunkBlocks;
    const std::int64_t last_block = (args.first_position + args.rows - 1) / kBlockTokens;
    for (int b = 0; b < kChunkBlocks; ++b) {
        const std::int32_t block = table[b < first || b > last ? first : b];
        blocks.k[b] = k_part(args.kv, block, args.kv_head);
        blocks.v[b] = v_part(args.kv, block, args.kv_head);
        const bool has_next =
            chunk + 1 < args.chunk_end && (chunk + 1) * kChunkBlocks + b <= last_block;
        blocks.next_k[b] =
            has_next ? k_part(args.kv, table[kChunkBlocks + b], args.kv_head) : blocks.k[b];
        blocks.next_v[b] =
            has_next ? v_part(args.kv, table[kChunkBlocks + b], args.kv_head) : blocks.v[b];
    }
    return blocks;
}

// Row `row` of a state, or of having seen nothing, becomes a running row.
template <class V>
[[gnu::noinline]] void begin_row(const float* states, std::int64_t row, const RunningRows& to) {
    if (states == nullptr) {
        for (std::int64_t d = 0; d < to.dims; d += V::kLanes) V::store(to.values + d, V::zero());
        *to.maxima = kMinusInfinity;
        *to.sums = 0;
        return;
    }
    const float* from = states + row * (to.dims + 2);
    for (std::int64_t d = 0; d < to.dims; d += V::kLanes)
        V::store(to.values + d, V::load(from + d));
    *to.maxima = from[to.dims];
    *to.sums = from[to.dims + 1];
}

// The other way round.
template <class V>
[[gnu::noinline]] void keep_row(const RunningRows& from, float* states, std::int64_t row) {
    float* to = states + row * (from.dims + 2);
    for (std::int64_t d = 0; d < from.dims; d += V::kLanes) {
        V::store(to + d, V::load(from.values + d));
    }
    to[from.dims] = *from.maxima;
    to[from.dims + 1] = *from.sums;
}

// Where an item's results go when its last chunk is merged.
template <class V>
[[gnu::noinline]] void end_item(const AttentionArgs& args, const AttentionScratch& scratch) {
    const std::int64_t dims = args.kv.head_dim;
    for (std::int64_t i = 0; i < args.rows * args.group; ++i) {
        const RunningRows row = running_rows(scratch, i, dims);
        if (args.end_state != nullptr) {
            keep_row<V>(row, args.end_state, i);
            continue;
        }
        const std::int64_t head = args.kv_head * args.group + i % args.group;
        const float* sink = args.sinks == nullptr ? nullptr : args.sinks + head;
        finish_row<V>(row, sink, args.out + place_of(args, i) * args.out_stride + head * dims);
    }
}

template <class V, KvDType kType>
void attend_item(const AttentionArgs& args) {
    const std::int64_t dims = args.kv.head_dim;
    const std::int64_t n = args.rows * args.group;
    const AttentionScratch scratch = carve_scratch<V>(args.scratch, n, dims);
    pack_queries<V>(args, n, scratch.queries);
    for (std::int64_t i = 0; i < n; ++i) {
        begin_row<V>(args.begin_state, i, running_rows(scratch, i, dims));
    }
    for (std::int64_t chunk = args.chunk_begin; chunk < args.chunk_end; ++chunk) {
        ChunkRange seen{0, 0};
        for (std::int64_t row = 0; row < args.rows; ++row) {
            seen = hull(seen, visible_range(args, args.first_position + row, chunk));
        }
        ChunkBlocks blocks{};
        if (!seen.empty()) blocks = chunk_blocks(args, chunk, seen);
        for (std::int64_t first = 0; first < n;) {
            const int rows = next_tile_rows<V>(n - first);
            attend_tile_of<V, kType>(rows, {.args = args,
                                            .scratch = scratch,
                                            .blocks = blocks,
                                            .chunk = chunk,
                                            .first = first});
            first += rows;
        }
    }
    if (args.partials == nullptr) end_item<V>(args, scratch);
}

template <class V>
void attend(const AttentionArgs& args) {
    switch (args.kv.dtype) {
        case KvDType::kF32:
            return attend_item<V, KvDType::kF32>(args);
        case KvDType::kBF16:
            return attend_item<V, KvDType::kBF16>(args);
        case KvDType::kInt8:
            return attend_item<V, KvDType::kInt8>(args);
    }
}

template <class V>
void merge_partials(const AttentionMergeArgs& args) {
    const std::int64_t dims = args.head_dim;
    const std::int64_t rows = args.rows * args.group;
    const AttentionScratch scratch = carve_scratch<V>(args.scratch, 1, dims);
    const RunningRows state{
        .values = scratch.values, .maxima = scratch.maxima, .sums = scratch.sums, .dims = dims};
    for (std::int64_t i = 0; i < rows; ++i) {
        begin_row<V>(args.begin_state, i, state);
        for (std::int64_t c = 0; c < args.num_chunks; ++c) {
            const float* chunk = args.partials + (c * rows + i) * (dims + 2);
            merge_rows<V>(state, chunk, chunk + dims, chunk + dims + 1, 1);
        }
        const std::int64_t head = args.kv_head * args.group + i % args.group;
        const float* sink = args.sinks == nullptr ? nullptr : args.sinks + head;
        finish_row<V>(state, sink, args.out + i / args.group * args.out_stride + head * dims);
    }
}

}  // namespace
}  // namespace pagoda::kernels
