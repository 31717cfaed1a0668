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

// Few rows wait for memory: while they pass over K and V they fetch those of the next chunk, line
// by line in the order of memory, in which the core's own prefetching joins. Many rows reuse what
// they have loaded, and floats, twice as many lines for the same work, lose by it.
template <KvDType kType, int R>
constexpr bool fetches_ahead() {
    return kType == KvDType::kBF16 && R <= 6;
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
    constexpr std::size_t kValueBytes = kType == KvDType::kF32 ? 4 : 2;
    constexpr std::size_t kLaneBytes = 4;  // a float, or a pair of bfloat16
    const int token = index * V::kLanes;
    const int slot = token % kBlockTokens;
    const auto run = static_cast<std::size_t>(slot / kKeysPerRun);
    const auto lane = static_cast<std::size_t>(slot % kKeysPerRun);
    return blocks.k[token / kBlockTokens] +
           run * static_cast<std::size_t>(dims) * kKeysPerRun * kValueBytes + lane * kLaneBytes;
}

// sums[r][v] += q_r(d) K(d) of kVecs vectors of keys, for the dims [d, d + 2) of a pair of bfloat16
// or one d of floats. q is [dims][R] from d on, keys from the same d on.
template <class V, KvDType kType, int R, int kVecs>
[[gnu::always_inline]] inline void add_key_dims(const std::byte* const (&keys)[kVecs],
                                                std::int64_t offset, const float* q,
                                                typename V::F (&sums)[R][kVecs]) {
    using F = typename V::F;
    constexpr bool kPairs = kType == KvDType::kBF16;
#pragma GCC unroll 2
    for (int part = 0; part < (kPairs ? 2 : 1); ++part) {
        F k[kVecs];
#pragma GCC unroll 16
        for (int v = 0; v < kVecs; ++v) {
            const std::byte* from = keys[v] + offset;
            if constexpr (kPairs) {
                const auto* pairs = reinterpret_cast<const std::uint16_t*>(from);
                k[v] = part == 0 ? V::load_even_bf16(pairs) : V::load_odd_bf16(pairs);
            } else {
                k[v] = V::load(reinterpret_cast<const float*>(from));
            }
        }
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
    constexpr int kStepDims = kType == KvDType::kBF16 ? 2 : 1;
    constexpr std::int64_t kStepBytes = kKeysPerRun * 4;
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
        const std::byte* ahead =
            blocks.next_k[token / kBlockTokens + block] + token % kBlockTokens * dims * 2;
        for (const std::int64_t end = dims * (block + 1) / kBlocks; d < end; d += kStepDims) {
#pragma GCC unroll 16
            for (int v = 0; v < kVecs; ++v) fetch_ahead<V, kType, R>(ahead + v * V::kLanes * 4, v);
            ahead += kTokens * 4;
            add_key_dims<V, kType, R, kVecs>(keys, d / kStepDims * kStepBytes, q + d * R, sums);
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

// V of one token (of its pair, for bfloat16), kVecs vectors of dims.
template <class V, KvDType kType, int kVecs>
[[gnu::always_inline]] inline void load_values(const std::byte* from, bool odd,
                                               typename V::F (&values)[kVecs]) {
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) {
        if constexpr (kType == KvDType::kBF16) {
            const auto* pairs = reinterpret_cast<const std::uint16_t*>(from) + 2 * v * V::kLanes;
            values[v] = odd ? V::load_odd_bf16(pairs) : V::load_even_bf16(pairs);
        } else {
            values[v] = V::load(reinterpret_cast<const float*>(from) + v * V::kLanes);
        }
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
        fetch_ahead<V, kType, R>(block.values + block.to_next + offset + v * V::kLanes * 4, v);
    }
}

// The tokens `slots` of one block; begin and end are even.
template <class V, KvDType kType, int R, int kVecs>
[[gnu::always_inline]] inline void add_block(const BlockValues& block, ChunkRange slots,
                                             const float* weights,
                                             typename V::F (&sums)[R][kVecs]) {
    const std::int64_t row_bytes = block.dims * 4;  // of a float token, or of a bfloat16 pair
    constexpr int kRowTokens = kType == KvDType::kBF16 ? 2 : 1;
    typename V::F values[kVecs];
    for (int slot = slots.begin; slot < slots.end; slot += 2) {
#pragma GCC unroll 2
        for (int t = 0; t < 2; ++t) {
            const std::int64_t offset = (slot + t) / kRowTokens * row_bytes;
            if (t % kRowTokens == 0) fetch_next_values<V, kType, R, kVecs>(block, offset);
            load_values<V, kType, kVecs>(block.values + offset, t == 1, values);
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
        const BlockValues block{.values = sum.blocks.v[index] + dim * 4,
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
// ends at even tokens.
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
        const bool is_pair = kType == KvDType::kBF16;
        const std::byte* from =
            sum.blocks.v[token / kBlockTokens] + (is_pair ? slot / 2 : slot) * sum.dims * 4;
        const typename V::F weight = V::set1(sum.weights[token]);
        for (std::int64_t d = 0; d < sum.dims; d += V::kLanes) {
            typename V::F value[1];
            load_values<V, kType, 1>(from + d * 4, slot % 2 != 0, value);
            V::store(sum.out + d, V::fma(weight, value[0], V::load(sum.out + d)));
        }
    }
}

}  // namespace
}  // namespace pagoda::kernels
