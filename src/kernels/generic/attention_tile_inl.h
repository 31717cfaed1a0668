#pragma once
// The two dot-product kernels of attention over a vector policy: scores of some query rows with
// the keys of a chunk, and the weighted sum of its V. A register tile takes R rows at once; every
// (row, key) and every (row, dim) has one accumulator that is summed in ascending order, so that
// R changes no bit. Internal linkage.

#include <cstddef>
#include <cstdint>

#include "kernels/args.h"
#include "kernels/generic/kv_layout_inl.h"

namespace pagoda::kernels {
namespace {  // NOLINT(google-build-namespaces): internal linkage is the point

inline constexpr int kChunkBlocks = kAttentionChunk / kBlockTokens;

// Keys of a chunk, counted from its start.
struct ChunkRange {
    int begin;
    int end;
    [[nodiscard]] bool empty() const { return begin >= end; }
    [[nodiscard]] bool whole() const { return begin == 0 && end == kAttentionChunk; }
};

// K and V of one KV head in the blocks of a chunk. A block that nobody sees stands for nothing
// and points to one that is seen, so that whatever is read there is memory of the cache.
struct ChunkBlocks {
    const std::byte* k[kChunkBlocks];
    const std::byte* v[kChunkBlocks];
    // Of the next chunk, to be fetched ahead.
    const std::byte* next_k[kChunkBlocks];
    const std::byte* next_v[kChunkBlocks];
};

// Values of one lane of four bytes, which are dims of K and tokens of V.
template <KvDType kType>
inline constexpr int kLaneValues = kv_format(kType).lane_values;
// V is summed over this many tokens at a time, which begin at a multiple of it.
template <KvDType kType>
inline constexpr int kTokenStep = kLaneValues<kType> < 2 ? 2 : kLaneValues<kType>;
inline constexpr std::int64_t kLaneBytes = 4;

// Few rows wait for memory: while they pass over K and V they fetch those of the next chunk, line
// by line in the order of memory, in which the core's own prefetching joins. Many rows reuse what
// they have loaded, and floats, twice as many lines for the same work, lose by it.
template <KvDType kType, int R>
constexpr bool fetches_ahead() {
    return kType != KvDType::kF32 && R <= 6;
}

// Vector v of consecutive ones: one fetch per line of 64 bytes.
template <class V, KvDType kType, int R>
[[gnu::always_inline]] inline void fetch_ahead(const std::byte* from, int v) {
    if constexpr (fetches_ahead<kType, R>()) {
        if (v * V::kLanes % 16 == 0) V::fetch(from);
    }
}

// How many vectors go with R rows: a power of two, at most 4, which keeps enough sums in flight
// even for one row to be faster than memory.
template <class V, int R>
constexpr int tile_vectors() {
    int vectors = 4;
    while (vectors * R > V::kAccumulators) vectors /= 2;
    return vectors;
}

// Where vector `index` of a chunk's keys (kLanes consecutive tokens) begins in K.
template <class V, KvDType kType>
[[gnu::always_inline]] inline const std::byte* key_vector(const ChunkBlocks& blocks, int index,
                                                          std::int64_t dims) {
    const int token = index * V::kLanes;
    const int slot = token % kBlockTokens;
    const std::int64_t run = slot / kKeysPerRun;
    const std::int64_t lane = slot % kKeysPerRun;
    return blocks.k[token / kBlockTokens] +
           (run * (dims / kLaneValues<kType>)*kKeysPerRun + lane) * kLaneBytes;
}

// What the values of kLanes tokens are multiplied with after they were loaded; parts are a chunk's.
template <class V, KvDType kType>
[[gnu::always_inline]] inline typename V::F token_scales(
    const std::byte* const (&parts)[kChunkBlocks], int vector, std::int64_t dims) {
    const int token = vector * V::kLanes;
    const float* scales = kv_scales(kType, parts[token / kBlockTokens], dims);
    return V::mul(V::load(scales + token % kBlockTokens), V::set1(V::kInt8Unit));
}

// The values at place `part` of consecutive lanes, without their scale.
template <class V, KvDType kType>
[[gnu::always_inline]] inline typename V::F load_part(const std::byte* lanes, int part) {
    if constexpr (kType == KvDType::kF32) {
        return V::load(reinterpret_cast<const float*>(lanes));
    } else if constexpr (kType == KvDType::kInt8) {
        return V::load_int8(lanes, part);
    } else {
        const auto* pairs = reinterpret_cast<const std::uint16_t*>(lanes);
        return part == 0 ? V::load_even_bf16(pairs) : V::load_odd_bf16(pairs);
    }
}

// sums[r][v] += q_r(d) K(d) of kVecs vectors of keys, for the dims of one lane, from d on. q is
// [dims][R] from d on, keys from the same d on.
template <class V, KvDType kType, int R, int kVecs>
[[gnu::always_inline]] inline void add_key_dims(const std::byte* const (&keys)[kVecs],
                                                std::int64_t offset, const float* q,
                                                typename V::F (&sums)[R][kVecs]) {
    using F = typename V::F;
#pragma GCC unroll 4
    for (int part = 0; part < kLaneValues<kType>; ++part) {
        F k[kVecs];
#pragma GCC unroll 16
        for (int v = 0; v < kVecs; ++v) k[v] = load_part<V, kType>(keys[v] + offset, part);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
            const F x = V::set1(q[part * R + r]);
#pragma GCC unroll 16
            for (int v = 0; v < kVecs; ++v) sums[r][v] = V::fma(x, k[v], sums[r][v]);
        }
    }
}

// scores[r * kAttentionChunk + key] = q_r . K_key for kVecs vectors of keys from vector `first`
// on. q is [dims][R]. Of the next chunk as many bytes of K are fetched as are read here, block
// by block.
template <class V, KvDType kType, int R, int kVecs>
[[gnu::always_inline]] inline void score_vectors(const ChunkBlocks& blocks, int first,
                                                 const float* q, std::int64_t dims, float* scores) {
    constexpr int kStepDims = kLaneValues<kType>;
    constexpr std::int64_t kStepBytes = kKeysPerRun * kLaneBytes;
    constexpr int kTokens = kVecs * V::kLanes;
    constexpr int kBlocks = kTokens > kBlockTokens ? kTokens / kBlockTokens : 1;
    const std::byte* keys[kVecs];
    typename V::F sums[R][kVecs];
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) {
        keys[v] = key_vector<V, kType>(blocks, first + v, dims);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) sums[r][v] = V::zero();
    }
    const int token = first * V::kLanes;
    std::int64_t d = 0;
    for (int block = 0; block < kBlocks; ++block) {
        const std::byte* ahead = blocks.next_k[token / kBlockTokens + block] +
                                 token % kBlockTokens * (dims / kStepDims) * kLaneBytes;
        for (const std::int64_t end = dims * (block + 1) / kBlocks; d < end; d += kStepDims) {
#pragma GCC unroll 16
            for (int v = 0; v < kVecs; ++v)
                fetch_ahead<V, kType, R>(ahead + v * V::kLanes * kLaneBytes, v);
            ahead += kTokens * kLaneBytes;
            add_key_dims<V, kType, R, kVecs>(keys, d / kStepDims * kStepBytes, q + d * R, sums);
        }
    }
    if constexpr (kv_format(kType).scale_bytes != 0) {
#pragma GCC unroll 16
        for (int v = 0; v < kVecs; ++v) {
            const typename V::F scales = token_scales<V, kType>(blocks.k, first + v, dims);
#pragma GCC unroll 16
            for (int r = 0; r < R; ++r) sums[r][v] = V::mul(sums[r][v], scales);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
        for (int v = 0; v < kVecs; ++v) {
            V::store(scores + r * kAttentionChunk + (first + v) * V::kLanes, sums[r][v]);
        }
    }
}

// A weighted sum: weights p [R][kAttentionChunk] of the keys `range`, added to out [R][dims].
struct WeightedSum {
    const ChunkBlocks& blocks;
    ChunkRange range;
    const float* weights;
    float* out;
    std::int64_t dims;
};

// sums[r][v] += p_r(token) V[token] for kVecs vectors of dims.
template <class V, int R, int kVecs>
[[gnu::always_inline]] inline void add_token(const float* weights, const typename V::F* values,
                                             typename V::F (&sums)[R][kVecs]) {
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
        const typename V::F p = V::set1(weights[r * kAttentionChunk]);
#pragma GCC unroll 16
        for (int v = 0; v < kVecs; ++v) sums[r][v] = V::fma(p, values[v], sums[r][v]);
    }
}

// V of the token at place `part` of its lanes, kVecs vectors of dims.
template <class V, KvDType kType, int kVecs>
[[gnu::always_inline]] inline void load_values(const std::byte* from, int part,
                                               typename V::F (&values)[kVecs]) {
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) {
        values[v] = load_part<V, kType>(from + v * V::kLanes * kLaneBytes, part);
    }
}

// Some dims of V in a block, and how far it is to the same ones of the next chunk.
struct BlockValues {
    const std::byte* values;
    std::ptrdiff_t to_next;
    std::int64_t dims;  // of a whole head
};

template <class V, KvDType kType, int R, int kVecs>
[[gnu::always_inline]] inline void fetch_next_values(const BlockValues& block,
                                                     std::int64_t offset) {
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) {
        fetch_ahead<V, kType, R>(block.values + block.to_next + offset + v * V::kLanes * kLaneBytes,
                                 v);
    }
}

// The tokens `slots` of one block; begin and end are multiples of kTokenStep.
template <class V, KvDType kType, int R, int kVecs>
[[gnu::always_inline]] inline void add_block(const BlockValues& block, ChunkRange slots,
                                             const float* weights,
                                             typename V::F (&sums)[R][kVecs]) {
    const std::int64_t row_bytes = block.dims * kLaneBytes;  // of the tokens that share lanes
    constexpr int kRowTokens = kLaneValues<kType>;
    typename V::F values[kVecs];
    for (int slot = slots.begin; slot < slots.end; slot += kTokenStep<kType>) {
#pragma GCC unroll 4
        for (int t = 0; t < kTokenStep<kType>; ++t) {
            const std::int64_t offset = (slot + t) / kRowTokens * row_bytes;
            if (t % kRowTokens == 0) fetch_next_values<V, kType, R, kVecs>(block, offset);
            load_values<V, kType, kVecs>(block.values + offset, t % kRowTokens, values);
            add_token<V, R, kVecs>(weights + slot + t, values, sums);
        }
    }
}

// Dims [dim, dim + kVecs * kLanes) of a weighted sum.
template <class V, KvDType kType, int R, int kVecs>
[[gnu::always_inline]] inline void sum_dims(const WeightedSum& sum, std::int64_t dim) {
    typename V::F sums[R][kVecs];
    float* out = sum.out + dim;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
        for (int v = 0; v < kVecs; ++v) sums[r][v] = V::load(out + r * sum.dims + v * V::kLanes);
    }
    for (int token = sum.range.begin; token < sum.range.end;) {
        const int index = token / kBlockTokens;
        const int start = index * kBlockTokens;
        const int stop =
            sum.range.end < start + kBlockTokens ? sum.range.end : start + kBlockTokens;
        const BlockValues block{.values = sum.blocks.v[index] + dim * kLaneBytes,
                                .to_next = sum.blocks.next_v[index] - sum.blocks.v[index],
                                .dims = sum.dims};
        add_block<V, kType, R, kVecs>(block, {token - start, stop - start}, sum.weights + start,
                                      sums);
        token = stop;
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
        for (int v = 0; v < kVecs; ++v) V::store(out + r * sum.dims + v * V::kLanes, sums[r][v]);
    }
}

// All dims from `dim` on, kVecs vectors at a time, then with half as many. The range begins and
// ends at multiples of kTokenStep.
template <class V, KvDType kType, int R, int kVecs>
[[gnu::always_inline]] inline void sum_values(const WeightedSum& sum, std::int64_t dim = 0) {
    for (; dim + kVecs * V::kLanes <= sum.dims; dim += kVecs * V::kLanes) {
        sum_dims<V, kType, R, kVecs>(sum, dim);
    }
    if constexpr (kVecs > 1) sum_values<V, kType, R, kVecs / 2>(sum, dim);
}

// The weighted sum of one row over any range, for the few tokens that only some rows of a tile
// see; the same multiply-adds as above, one token at a time.
template <class V, KvDType kType>
[[gnu::noinline]] void sum_row_alone(const WeightedSum& sum) {
    for (int token = sum.range.begin; token < sum.range.end; ++token) {
        const int slot = token % kBlockTokens;
        constexpr int kRowTokens = kLaneValues<kType>;
        const std::byte* from =
            sum.blocks.v[token / kBlockTokens] + slot / kRowTokens * sum.dims * kLaneBytes;
        const typename V::F weight = V::set1(sum.weights[token]);
        for (std::int64_t d = 0; d < sum.dims; d += V::kLanes) {
            typename V::F value[1];
            load_values<V, kType, 1>(from + d * kLaneBytes, slot % kRowTokens, value);
            V::store(sum.out + d, V::fma(weight, value[0], V::load(sum.out + d)));
        }
    }
}

}  // namespace
}  // namespace pagoda::kernels
