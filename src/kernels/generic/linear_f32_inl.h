#pragma once
// Exactly dequantised weights times f32 activations, over a Vec policy: the order of
// ref/linear.cpp, one accumulator per output, k ascending. A run of 32 values of a tile is widened
// to a panel of floats in L1, and all rows of a block use it, kRows at a time.

#include "kernels/args.h"
#include "kernels/generic/decode_inl.h"
#include "kernels/generic/prefetch_inl.h"
#include "kernels/generic/store_inl.h"

namespace pagoda::kernels {
namespace {

constexpr int kFloatRowBlock = 48;
constexpr int kFloatRun = 32;  // values of K in a panel: [32][32 columns] floats, 4 KiB

struct FloatRows {
    const std::byte* first;
    std::int64_t stride;  // bytes

    [[gnu::always_inline]] const std::byte* at(int row, std::int64_t k) const {
        return first + row * stride + k * 4;
    }
};

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
}

// Values [first, first + count) of a tile to panel[count][32].
template <class Vec, tensor::DType kDType>
void widen_run(const std::byte* tile, std::int64_t first, int count, float* panel) {
    using tensor::DType;
    if constexpr (weight_format(kDType).scales != ScaleKind::kPlain) {
        widen_group<Vec, kDType>(tile, first / kGroupValues, panel);
    } else {
        constexpr int kSize = kDType == DType::kF32 ? 4 : 2;
        const std::byte* in = tile + first * kTileColumns * kSize;
        for (int i = 0; i < count * kTileColumns; i += Vec::kLanes) {
            if constexpr (kDType == DType::kF32)
                Vec::store(panel + i, Vec::load_float(in + kSize * i));
            if constexpr (kDType == DType::kF16)
                Vec::store(panel + i, Vec::load_half(in + kSize * i));
            if constexpr (kDType == DType::kBF16)
                Vec::store(panel + i, Vec::load_bfloat(in + kSize * i));
        }
    }
}

// sums[r][32] += x[r][first + i] * panel[i][32], i ascending.
template <class Vec, int kR, int kC>
void add_run(const float* panel, const FloatRows& x, std::int64_t first, int count, float* sums) {
    for (int vec = 0; vec < kTileColumns / Vec::kLanes; vec += kC) {
        typename Vec::F acc[kR][kC];
#pragma GCC unroll 8
        for (int r = 0; r < kR; ++r)
#pragma GCC unroll 8
            for (int c = 0; c < kC; ++c)
                acc[r][c] = Vec::load(sums + r * kTileColumns + (vec + c) * Vec::kLanes);
        for (int i = 0; i < count; ++i) {
            typename Vec::F w[kC];
#pragma GCC unroll 8
            for (int c = 0; c < kC; ++c)
                w[c] = Vec::load(panel + i * kTileColumns + (vec + c) * Vec::kLanes);
#pragma GCC unroll 8
            for (int r = 0; r < kR; ++r) {
                const typename Vec::F value = Vec::broadcast(x.at(r, first + i));
#pragma GCC unroll 8
                for (int c = 0; c < kC; ++c) acc[r][c] = Vec::fma(value, w[c], acc[r][c]);
            }
        }
#pragma GCC unroll 8
        for (int r = 0; r < kR; ++r)
#pragma GCC unroll 8
            for (int c = 0; c < kC; ++c)
                Vec::store(sums + r * kTileColumns + (vec + c) * Vec::kLanes, acc[r][c]);
    }
}

// What add_run() works on, for as many rows as are there.
struct FloatRunArgs {
    const float* panel;
    FloatRows x;
    std::int64_t first;
    int count;
    float* sums;
};

// Picks the instance for `rows` <= kMax.
template <class Vec, int kMax>
void add_run_to(int rows, const FloatRunArgs& run) {
    if constexpr (kMax > 1) {
        if (rows < kMax) return add_run_to<Vec, kMax - 1>(rows, run);
    }
    add_run<Vec, kMax, kMax == 1 ? Vec::kRowVecs : Vec::kVecs>(run.panel, run.x, run.first,
                                                               run.count, run.sums);
}

// Packed bytes of kFloatRun values of a tile, which is a linear stream of such runs.
template <tensor::DType kDType>
constexpr int run_bytes() {
    constexpr WeightFormat kFormat = weight_format(kDType);
    constexpr TileLayout kLayout = tile_layout(kFormat);
    if (kFormat.scales != ScaleKind::kPlain) return kLayout.chunk_bytes / kLayout.chunk_groups;
    return kFloatRun * kTileColumns * (kDType == tensor::DType::kF32 ? 4 : 2);
}

// Asks for the run that lies about kAheadBytes further on; beyond the tile is the next one.
template <class Vec, tensor::DType kDType>
[[gnu::always_inline]] inline void prefetch_run(const std::byte* tile, std::int64_t first) {
    constexpr int kBytes = run_bytes<kDType>();
    constexpr int kAheadBytes = 8192;
    const std::byte* from =
        tile + (first / kFloatRun + (kAheadBytes + kBytes - 1) / kBytes) * kBytes;
    for (int at = 0; at < kBytes; at += 64) fetch_far(from + at);
}

template <class Vec, tensor::DType kDType>
void multiply_floats(const LinearArgs& args, const std::byte* tile, const FloatRows& x, int rows,
                     float* sums) {
    alignas(64) float panel[kFloatRun * kTileColumns];
    const int parts = (rows + Vec::kRows - 1) / Vec::kRows;
    for (std::int64_t k = 0; k < args.weight.in_features; k += kFloatRun) {
        const std::int64_t left = args.weight.in_features - k;
        const int count = left < kFloatRun ? static_cast<int>(left) : kFloatRun;
        prefetch_run<Vec, kDType>(tile, k);
        widen_run<Vec, kDType>(tile, k, count, panel);
        int row = 0;
        for (int part = 0; part < parts; ++part) {
            const int part_rows = (rows - row + parts - part - 1) / (parts - part);
            add_run_to<Vec, Vec::kRows>(part_rows, {.panel = panel,
                                                    .x = {x.first + row * x.stride, x.stride},
                                                    .first = k,
                                                    .count = count,
                                                    .sums = sums + row * kTileColumns});
            row += part_rows;
        }
    }
}

template <class Vec, tensor::DType kDType>
void linear_f32_of(const LinearArgs& args) {
    constexpr WeightFormat kFormat = weight_format(kDType);
    constexpr TileLayout kLayout = tile_layout(kFormat);
    const std::int64_t cols = args.weight.in_features;
    const std::int64_t tile_bytes =
        kFormat.scales == ScaleKind::kPlain
            ? cols * kTileColumns * (kDType == tensor::DType::kF32 ? 4 : 2)
            : cols / (kGroupValues * kLayout.chunk_groups) * kLayout.chunk_bytes;
    alignas(64) float sums[kFloatRowBlock * kTileColumns];
    for (std::int64_t column = args.column_begin; column < args.column_end;
         column += kTileColumns) {
        const std::byte* tile = args.weight.data + column / kTileColumns * tile_bytes;
        for (std::int64_t row = 0; row < args.rows; row += kFloatRowBlock) {
            const int rows = args.rows - row < kFloatRowBlock ? static_cast<int>(args.rows - row)
                                                              : kFloatRowBlock;
            for (int i = 0; i < rows * kTileColumns; ++i) sums[i] = 0;
            multiply_floats<Vec, kDType>(
                args, tile, {args.in + row * args.in_stride, args.in_stride}, rows, sums);
            store_tile<Vec>(args, row, rows, column, sums);
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
