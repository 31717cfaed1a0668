#pragma once
// Exactly dequantised weights times f32 activations, over a Vec policy: the order of
// ref/linear.cpp, one accumulator per output, k ascending, whatever the path.
//
// Up to kFloatRowBlock rows meet up to kFloatTiles tiles of 32 columns, a panel of K at a time:
//
//   panel of K   copy the rows' values side by side: x[row][kRowFloats], in L2
//     tile       rows 0..11    widen the tile's values, use them, keep them in a panel of floats
//                rows 12..23   read the panel from L1
//                ...           (kFloatRows at a time; the sums wait in L2)
//
// F32 weights need no panel, and quantised ones are widened to it before the first rows. A single
// row reads its tiles as they come.
//
// K is counted in slots: what one Vec::fma takes of it. That is a value, or with Vec::kSlotValues 2
// a pair of BF16 values (the order of linear_bf16 in ref/linear.cpp) in the place of a float; the
// copied rows are rounded to such pairs, and BF16 tiles give their values of two k as pairs.

#include "kernels/args.h"
#include "kernels/generic/decode_inl.h"
#include "kernels/generic/prefetch_inl.h"
#include "kernels/generic/row_cut_inl.h"
#include "kernels/generic/store_inl.h"

namespace pagoda::kernels {
namespace {

constexpr int kFloatRowBlock = 96;  // rows that share a widened panel
constexpr int kFloatTiles = 8;      // tiles that share copied rows
constexpr int kFloatPanel = 128;    // slots of K: 16 KiB of widened weights
// From row to row of the copy: an odd number of cache lines, so that rows spread over L1's sets.
constexpr int kRowFloats = kFloatPanel + 16;
static_assert(kFloatPanel % kGroupValues == 0);

template <tensor::DType kDType>
constexpr bool kIsPlain = weight_format(kDType).scales == ScaleKind::kPlain;

// Packed bytes of kGroupValues values of a tile, which is a linear stream of such runs.
template <tensor::DType kDType>
constexpr int run_bytes() {
    constexpr WeightFormat kFormat = weight_format(kDType);
    constexpr TileLayout kLayout = tile_layout(kFormat);
    if (!kIsPlain<kDType>) return kLayout.chunk_bytes / kLayout.chunk_groups;
    return kGroupValues * kTileColumns * (kDType == tensor::DType::kF32 ? 4 : 2);
}

// The four values of K of step kStep, for one vector of columns.
template <class Vec, tensor::DType kDType, int kStep>
[[gnu::always_inline]] inline void widen_step(GroupPlace place, int vec, typename Vec::F scale,
                                              typename Vec::F minimum, float* panel) {
    using Format = TileFormat<Vec, kDType>;
    const typename Vec::I codes =
        decode_step<Vec, kDType, Codes::kSigned, 0, kStep>(codes_of<Format>(place), vec);
    float* out = panel + 4 * kStep * kTileColumns + vec * Vec::kLanes;
    unroll<4>([&](auto byte) {
        constexpr int kByte = decltype(byte)::value;
        const typename Vec::F code = Vec::template byte_to_float<kByte>(codes);
        // scale * code is exact, so the fused sum rounds once, as the separate one does.
        if constexpr (Format::kMinimum) {
            Vec::store(out + kByte * kTileColumns, Vec::fma(scale, code, minimum));
        } else {
            Vec::store(out + kByte * kTileColumns, Vec::mul(scale, code));
        }
    });
}

template <class Vec, tensor::DType kDType>
void widen_group(const std::byte* tile, std::int64_t group, float* panel) {
    using Format = TileFormat<Vec, kDType>;
    const GroupPlace place = place_of<Format>(tile, group);
    for (int vec = 0; vec < kTileColumns / Vec::kLanes; ++vec) {
        typename Vec::F scale[2];
        typename Vec::F minimum[2] = {Vec::zero(), Vec::zero()};
        scale[0] = scale[1] = decode_scale<Vec, kDType>(place, vec);
        if constexpr (Format::kMinimum)
            minimum[0] = minimum[1] = decode_minimum<Vec, kDType>(place, vec);
        if constexpr (Format::kHalves) {
            for (int half = 0; half < 2; ++half) {
                scale[half] =
                    Vec::mul(scale[half], decode_half_scale<Vec, kDType>(place, half, vec));
                if constexpr (Format::kMinimum)
                    minimum[half] =
                        Vec::mul(minimum[half], decode_half_minimum<Vec, kDType>(place, half, vec));
            }
        }
        unroll<8>([&](auto step) {
            constexpr int kStep = decltype(step)::value;
            widen_step<Vec, kDType, kStep>(place, vec, scale[kStep / 4], minimum[kStep / 4], panel);
        });
    }
    // g++ 12 takes some instances for functions that write nothing, and drops their calls.
    asm volatile("" : : "r"(panel) : "memory");
}

// Where the inner loop has the weights from: load(k, vec) are the values at k of a vector of
// columns, in a panel, in a tile of a plain type, or in one that leaves a panel behind.
template <class V>
struct FloatPanel {
    using Vec = V;
    const float* panel;  // [kFloatPanel][32]

    [[gnu::always_inline]] typename Vec::F load(std::int64_t k, int vec) const {
        return Vec::load(panel + k * kTileColumns + vec * Vec::kLanes);
    }
};

template <class V, tensor::DType kDType>
struct PlainTile {
    using Vec = V;
    const std::byte* values;  // [K][32]

    [[gnu::always_inline]] typename Vec::F load(std::int64_t k, int vec) const {
        using tensor::DType;
        constexpr int kSize = kDType == DType::kF32 ? 4 : 2;
        const std::byte* in =
            values + (k * Vec::kSlotValues * kTileColumns + vec * Vec::kLanes) * kSize;
        if constexpr (Vec::kSlotValues == 2) return Vec::load_pairs(in, in + kTileColumns * kSize);
        if constexpr (kDType == DType::kF32) return Vec::load_float(in);
        if constexpr (kDType == DType::kF16) return Vec::load_half(in);
        if constexpr (kDType == DType::kBF16 && Vec::kSlotValues == 1) return Vec::load_bfloat(in);
    }
};

template <class V, tensor::DType kDType>
struct KeptPlainTile {
    using Vec = V;
    PlainTile<Vec, kDType> tile;
    float* panel;

    [[gnu::always_inline]] typename Vec::F load(std::int64_t k, int vec) const {
        const typename Vec::F value = tile.load(k, vec);
        Vec::store(panel + k * kTileColumns + vec * Vec::kLanes, value);
        return value;
    }
};

// What an inner loop works on: `parts` times kR rows that follow each other.
struct FloatWork {
    const float* x = nullptr;  // [rows][kRowFloats]
    float* sums = nullptr;     // [rows][32]
    int parts = 0;
    Ahead ahead;             // of the weights: a step for every kAheadSlots slots and pass
    std::int64_t count = 0;  // slots of K
    float* out = nullptr;    // where the sums go after this panel, or null
    std::int64_t out_stride = 0;
};
constexpr int kAheadSlots = 4;

// acc[r][c] += x[r][k] * w[k][c]
template <int kR, int kC, class Source>
[[gnu::always_inline]] inline void add_value(const Source& source, const float* x, std::int64_t k,
                                             int first_vec,
                                             typename Source::Vec::F (&acc)[kR][kC]) {
    using Vec = typename Source::Vec;
    typename Vec::F w[kC];
#pragma GCC unroll 16
    for (int c = 0; c < kC; ++c) w[c] = source.load(k, first_vec + c);
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
        const typename Vec::F value =
            Vec::broadcast(reinterpret_cast<const std::byte*>(x + r * kRowFloats + k));
#pragma GCC unroll 16
        for (int c = 0; c < kC; ++c) acc[r][c] = Vec::fma(value, w[c], acc[r][c]);
    }
}

// sums[r][32] += x[r][k] * w[k][32], k ascending, for kR rows and kC vectors of columns.
template <int kR, int kC, class Source>
[[gnu::always_inline]] inline void add_floats(const Source& source, FloatWork& work,
                                              int first_vec) {
    using Vec = typename Source::Vec;
    float* sums = work.sums + first_vec * Vec::kLanes;
    const float* x = work.x;
    Ahead ahead = work.ahead;
    typename Vec::F acc[kR][kC];
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 16
        for (int c = 0; c < kC; ++c)
            acc[r][c] = Vec::load(sums + r * kTileColumns + c * Vec::kLanes);
    std::int64_t k = 0;
    for (; k + kAheadSlots <= work.count; k += kAheadSlots) {
        unroll<kAheadSlots>([&](auto index) {
            add_value<kR, kC>(source, x, k + decltype(index)::value, first_vec, acc);
        });
        ahead.advance();
    }
    for (; k < work.count; ++k) add_value<kR, kC>(source, x, k, first_vec, acc);
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 16
        for (int c = 0; c < kC; ++c)
            Vec::store(sums + r * kTileColumns + c * Vec::kLanes, acc[r][c]);
    work.ahead = ahead;
}

// Few rows take the whole tile at once: their sums are too few to hide the latency otherwise.
template <class Vec>
constexpr int float_vecs(int rows) {
    constexpr int kAll = kTileColumns / Vec::kLanes;
    return (rows + 1) * kAll <= Vec::kFloatRegisters ? kAll : Vec::kFloatVecs;
}

// All columns of the tile for work.parts times kR rows; leaves `work` at the rows behind them.
template <int kR, class Source>
[[gnu::noinline]] void add_float_parts(const Source& source, FloatWork& work) {
    using Vec = typename Source::Vec;
    constexpr int kC = float_vecs<Vec>(kR);
    for (; work.parts > 0; --work.parts) {
        for (int r = 0; r < kR && work.out != nullptr; ++r, work.out += work.out_stride) {
            fetch_to_write(work.out);
            fetch_to_write(work.out + kTileColumns / 2);
        }
        for (int vec = 0; vec < kTileColumns / Vec::kLanes; vec += kC)
            add_floats<kR, kC>(source, work, vec);
        work.x += kR * kRowFloats;
        work.sums += kR * kTileColumns;
    }
}

// Picks the instance for `rows` <= kMax.
template <int kMax, class Source>
void add_float_parts_of(int rows, const Source& source, FloatWork& work) {
    if constexpr (kMax > 1) {
        if (rows < kMax) return add_float_parts_of<kMax - 1>(rows, source, work);
    }
    add_float_parts<kMax>(source, work);
}

// The parts of `cut` from number `begin` on, before `end`; larger ones come first.
template <class Source>
void add_cut(const RowCut& cut, int begin, int end, const Source& source, FloatWork& work) {
    constexpr int kMax = Source::Vec::kFloatRows;
    const int larger = cut.larger < end ? cut.larger : end;
    work.parts = larger - begin;
    if (work.parts > 0) add_float_parts_of<kMax>(cut.size + 1, source, work);
    work.parts = end - (begin > larger ? begin : larger);
    if (work.parts > 0) add_float_parts_of<kMax>(cut.size, source, work);
}

// Slots [first, first + work.count) of a tile for all rows of a block.
template <class Vec, tensor::DType kDType>
void multiply_panel(const std::byte* tile, std::int64_t first, const RowCut& cut, FloatWork& work) {
    alignas(64) float panel[kFloatPanel * kTileColumns];
    if constexpr (kIsPlain<kDType>) {
        const PlainTile<Vec, kDType> plain{tile + first * Vec::kSlotValues / kGroupValues *
                                                      run_bytes<kDType>()};
        if (kDType == tensor::DType::kF32 || cut.parts == 1)
            return add_cut(cut, 0, cut.parts, plain, work);
        add_cut(cut, 0, 1, KeptPlainTile<Vec, kDType>{plain, panel}, work);
        add_cut(cut, 1, cut.parts, FloatPanel<Vec>{panel}, work);
    } else {
        for (std::int64_t k = 0; k < work.count; k += kGroupValues)
            widen_group<Vec, kDType>(tile, (first + k) / kGroupValues, panel + k * kTileColumns);
        add_cut(cut, 0, cut.parts, FloatPanel<Vec>{panel}, work);
    }
}

// Rows and tiles that are multiplied together.
struct FloatBlock {
    std::int64_t first_row;
    int rows;
    std::int64_t column;
    int tiles;
    std::int64_t tile_bytes;
};

// x[rows][kRowFloats] = slots [first, first + count) of the block's rows.
template <class Vec>
void copy_rows(const LinearArgs& args, const FloatBlock& block, std::int64_t first, int count,
               float* x) {
    for (int r = 0; r < block.rows; ++r, x += kRowFloats) {
        const std::byte* in =
            args.in + (block.first_row + r) * args.in_stride + first * Vec::kSlotValues * 4;
        int k = 0;
        if constexpr (Vec::kSlotValues == 2) {
            for (; k < count; k += Vec::kLanes)
                Vec::store(x + k, Vec::round_pairs(in + k * 8, count - k));
            continue;
        }
        for (; k + Vec::kLanes <= count; k += Vec::kLanes)
            Vec::store(x + k, Vec::load_float(in + k * 4));
        for (; k < count; ++k) x[k] = *reinterpret_cast<const float*>(in + k * 4);
    }
}

template <class Vec, tensor::DType kDType>
void multiply_block(const LinearArgs& args, const FloatBlock& block) {
    constexpr std::int64_t kPanelBytes =
        std::int64_t{kFloatPanel * Vec::kSlotValues / kGroupValues} * run_bytes<kDType>();
    alignas(64) float x[kFloatRowBlock * kRowFloats];
    alignas(64) float sums[kFloatTiles * kFloatRowBlock * kTileColumns];
    const std::int64_t slots = args.weight.in_features / Vec::kSlotValues;
    const std::byte* tiles = args.weight.data + block.column / kTileColumns * block.tile_bytes;
    const RowCut cut(block.rows, Vec::kFloatRows);
    const int steps = cut.parts * (kFloatPanel / kAheadSlots);
    const int tile_sums = block.rows * kTileColumns;
    for (int i = 0; i < block.tiles * tile_sums; ++i) sums[i] = 0;
    for (std::int64_t first = 0; first < slots; first += kFloatPanel) {
        const std::int64_t left = slots - first;
        const int count = left < kFloatPanel ? static_cast<int>(left) : kFloatPanel;
        const bool is_last = left <= kFloatPanel;
        copy_rows<Vec>(args, block, first, count, x);
        const std::byte* at = tiles + first / kFloatPanel * kPanelBytes;
        const std::byte* then = is_last ? tiles + block.tiles * block.tile_bytes : at + kPanelBytes;
        for (int tile = 0; tile < block.tiles; ++tile, at += block.tile_bytes) {
            const std::byte* ahead = tile + 1 < block.tiles ? at + block.tile_bytes : then;
            FloatWork work{.x = x,
                           .sums = sums + tile * tile_sums,
                           .ahead = {ahead, ahead, (kPanelBytes + steps - 1) / steps},
                           .count = count,
                           .out = is_last ? args.out + block.first_row * args.out_stride +
                                                block.column + tile * kTileColumns
                                          : nullptr,
                           .out_stride = args.out_stride};
            multiply_panel<Vec, kDType>(tiles + tile * block.tile_bytes, first, cut, work);
        }
    }
    for (int tile = 0; tile < block.tiles; ++tile)
        store_tile<Vec>(args, block.first_row, block.rows, block.column + tile * kTileColumns,
                        sums + tile * tile_sums);
}

// All of K for one row, without a copy. Quantised weights are widened a group at a time, so that
// the next group's widening overlaps with the sums, which wait for each other.
template <class Vec, tensor::DType kDType>
void multiply_one_row(const LinearArgs& args, std::int64_t column, const std::byte* tile) {
    constexpr std::int64_t kAheadBytes = 8192;
    const std::int64_t cols = args.weight.in_features;
    const std::int64_t length = kIsPlain<kDType> ? cols : kGroupValues;
    alignas(64) float panel[kGroupValues * kTileColumns];
    alignas(64) float sums[kTileColumns] = {};
    FloatWork work{.ahead = {tile + kAheadBytes, tile + kAheadBytes,
                             run_bytes<kDType>() / kGroupValues * kAheadSlots},
                   .count = length};
    for (std::int64_t first = 0; first < cols; first += length) {
        work.x = reinterpret_cast<const float*>(args.in) + first;
        work.sums = sums;
        work.parts = 1;
        if constexpr (kIsPlain<kDType>) {
            add_float_parts<1>(PlainTile<Vec, kDType>{tile}, work);
        } else {
            widen_group<Vec, kDType>(tile, first / kGroupValues, panel);
            add_float_parts<1>(FloatPanel<Vec>{panel}, work);
        }
    }
    store_tile<Vec>(args, 0, 1, column, sums);
}

// Tiles that meet `rows` rows together, of `left`: runs of equal length.
inline int tiles_together(int rows, std::int64_t left) {
    const std::int64_t most = std::int64_t{kFloatTiles} * (kFloatRowBlock / rows);
    const std::int64_t runs = (left + most - 1) / most;
    return static_cast<int>((left + runs - 1) / runs);
}

template <class Vec, tensor::DType kDType>
void linear_f32_of(const LinearArgs& args) {
    const std::int64_t cols = args.weight.in_features;
    const std::int64_t tile_bytes = kIsPlain<kDType> ? cols * (run_bytes<kDType>() / kGroupValues)
                                                     : cols / kGroupValues * run_bytes<kDType>();
    const std::int64_t end = (args.column_end + kTileColumns - 1) / kTileColumns;
    if (args.rows == 1 && Vec::kSlotValues == 1) {
        for (std::int64_t tile = args.column_begin / kTileColumns; tile < end; ++tile)
            multiply_one_row<Vec, kDType>(args, tile * kTileColumns,
                                          args.weight.data + tile * tile_bytes);
        return;
    }
    for (std::int64_t row = 0; row < args.rows; row += kFloatRowBlock) {
        const int rows =
            args.rows - row < kFloatRowBlock ? static_cast<int>(args.rows - row) : kFloatRowBlock;
        for (std::int64_t tile = args.column_begin / kTileColumns; tile < end;) {
            const FloatBlock block{.first_row = row,
                                   .rows = rows,
                                   .column = tile * kTileColumns,
                                   .tiles = tiles_together(rows, end - tile),
                                   .tile_bytes = tile_bytes};
            multiply_block<Vec, kDType>(args, block);
            tile += block.tiles;
        }
    }
}

template <class Vec>
void linear_f32_any(const LinearArgs& args) {
    using tensor::DType;
    switch (args.weight.dtype) {
        case DType::kF32:
            return linear_f32_of<Vec, DType::kF32>(args);
        case DType::kF16:
            return linear_f32_of<Vec, DType::kF16>(args);
        case DType::kBF16:
            return linear_f32_of<Vec, DType::kBF16>(args);
        case DType::kQ4_0:
            return linear_f32_of<Vec, DType::kQ4_0>(args);
        case DType::kQ4_1:
            return linear_f32_of<Vec, DType::kQ4_1>(args);
        case DType::kQ5_0:
            return linear_f32_of<Vec, DType::kQ5_0>(args);
        case DType::kQ5_1:
            return linear_f32_of<Vec, DType::kQ5_1>(args);
        case DType::kQ8_0:
            return linear_f32_of<Vec, DType::kQ8_0>(args);
        case DType::kQ2_K:
            return linear_f32_of<Vec, DType::kQ2_K>(args);
        case DType::kQ3_K:
            return linear_f32_of<Vec, DType::kQ3_K>(args);
        case DType::kQ4_K:
            return linear_f32_of<Vec, DType::kQ4_K>(args);
        case DType::kQ5_K:
            return linear_f32_of<Vec, DType::kQ5_K>(args);
        case DType::kQ6_K:
            return linear_f32_of<Vec, DType::kQ6_K>(args);
        case DType::kIQ4_NL:
            return linear_f32_of<Vec, DType::kIQ4_NL>(args);
        case DType::kIQ4_XS:
            return linear_f32_of<Vec, DType::kIQ4_XS>(args);
        case DType::kMXFP4:
            return linear_f32_of<Vec, DType::kMXFP4>(args);
        default:
            return;
    }
}

}  // namespace
}  // namespace pagoda::kernels
