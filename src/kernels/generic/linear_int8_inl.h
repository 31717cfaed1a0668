#pragma once
// Block-quantised weights times int8 activations, over a Vec policy. The order of every sum is that
// of ref/linear.cpp: one accumulator per output, groups ascending, so the number of rows, the path
// and the tile change no bit.
//
// A tile of 32 columns is multiplied with up to kRowBlock rows, a chunk of K at a time:
//
//   chunk of K   rows 0..5     decode the packed tile in registers, use it, keep it in the panel
//                rows 6..11    read the panel
//                ...           (kRows at a time; the sums wait in L1)
//   next chunk   ...
//
// Multiplying hides what else there is to do: storing the panel, fetching the weights of a later
// chunk from memory, the activations of the next rows from L2 and the lines of the output.

#include "kernels/args.h"
#include "kernels/generic/prefetch_inl.h"
#include "kernels/generic/row_cut_inl.h"
#include "kernels/generic/store_inl.h"
#include "kernels/generic/tile_source_inl.h"

namespace pagoda::kernels {
namespace {

constexpr int kRowBlock = 96;     // rows that share a panel
constexpr int kAheadGroups = 32;  // how far weights are fetched ahead: 18 KiB of Q4_0

// What an inner loop works on: `parts` times kR rows that follow each other, and `groups` of K.
struct Work {
    const std::byte* x;  // activations of the first row, at the chunk's first group
    std::int64_t stride;
    float* sums;  // [rows][32]
    int parts;
    std::int64_t groups;
    const std::byte* then;  // the rows that follow on the last part
    Ahead ahead;
    float* out;  // where the sums go after this chunk, or null
    std::int64_t out_stride;
};

// kR rows of activations, in steps of a group. Three rows share a pointer, since an address may
// hold once and twice the stride.
template <int kR>
struct RowCursor {
    const std::byte* third[(kR + 2) / 3];
    std::int64_t stride;

    [[gnu::always_inline]] RowCursor(const std::byte* first, std::int64_t row_stride)
        : stride(row_stride) {
        for (int i = 0; i < (kR + 2) / 3; ++i) third[i] = first + 3 * i * row_stride;
    }
    [[gnu::always_inline]] const std::byte* codes(int row) const {
        return third[row / 3] + row % 3 * stride;
    }
    [[gnu::always_inline]] const std::byte* field(int row, RowField field) const {
        return codes(row) + field * 4;
    }
    [[gnu::always_inline]] void advance() {
        for (const std::byte*& first : third) first += kRowGroupBytes;
    }
};

// Field of the start values of a dot product over a whole group, or over half of one.
template <class Shape>
constexpr RowField start_field(int half) {
    if (Shape::kStart == Start::k8) return kFieldStart8;
    if (!Shape::kHalves) return kFieldStart128;
    return half == 0 ? kFieldStart128Low : kFieldStart128High;
}

// dot[r][c] = integer dot product of steps [kFromStep, kToStep) of a group, as float.
template <int kR, int kC, int kFromStep, int kToStep, class Source>
[[gnu::always_inline]] inline void dot_steps(const Source& source, typename Source::Place place,
                                             const RowCursor<kR>& x, int first_vec,
                                             typename Source::Vec::F (&out)[kR][kC]) {
    using Vec = typename Source::Vec;
    using Shape = typename Source::Shape;
    constexpr bool kStarts = Shape::kStart != Start::kNone;
    constexpr RowField kField = start_field<Shape>(kFromStep / 4);
    typename Vec::I sum[kR][kC];
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 8
        for (int c = 0; c < kC; ++c)
            sum[r][c] = Vec::template begin<Shape::kDomain, kStarts>(x.field(r, kField));
    unroll<kToStep, kFromStep>([&](auto step) {
        constexpr int kStep = decltype(step)::value;
        typename Vec::I w[kC];
#pragma GCC unroll 8
        for (int c = 0; c < kC; ++c) w[c] = source.template codes<kStep>(place, first_vec + c);
#pragma GCC unroll 8
        for (int r = 0; r < kR; ++r) {
            const typename Vec::I values = Vec::broadcast4(x.codes(r) + 4 * kStep);
#pragma GCC unroll 8
            for (int c = 0; c < kC; ++c)
                sum[r][c] = Vec::template dot<Shape::kDomain>(sum[r][c], w[c], values);
        }
    });
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 8
        for (int c = 0; c < kC; ++c)
            out[r][c] =
                Vec::template finish<Shape::kDomain, kStarts>(sum[r][c], x.field(r, kField));
}

// acc += one group, for formats with one scale for 32 values.
template <int kR, int kC, class Source>
[[gnu::always_inline]] inline void add_group(const Source& source, typename Source::Place place,
                                             const RowCursor<kR>& x, int first_vec,
                                             typename Source::Vec::F (&acc)[kR][kC]) {
    using Vec = typename Source::Vec;
    typename Vec::F dot[kR][kC];
    dot_steps<kR, kC, 0, 8>(source, place, x, first_vec, dot);
#pragma GCC unroll 8
    for (int c = 0; c < kC; ++c) {
        const typename Vec::F scale = source.scale(place, first_vec + c);
#pragma GCC unroll 8
        for (int r = 0; r < kR; ++r)
            acc[r][c] = Vec::fma(
                dot[r][c], Vec::mul(scale, Vec::broadcast(x.field(r, kFieldScale))), acc[r][c]);
        if constexpr (Source::Shape::kMinimum) {
            const typename Vec::F minimum = source.minimum(place, first_vec + c);
#pragma GCC unroll 8
            for (int r = 0; r < kR; ++r)
                acc[r][c] =
                    Vec::fma(minimum, Vec::broadcast(x.field(r, kFieldScaledSum)), acc[r][c]);
        }
    }
}

// acc += the minima of a group of halves.
template <int kR, int kC, class Source>
[[gnu::always_inline]] inline void add_half_minima(const Source& source,
                                                   typename Source::Place place,
                                                   const RowCursor<kR>& x, int first_vec,
                                                   typename Source::Vec::F (&acc)[kR][kC]) {
    using Vec = typename Source::Vec;
#pragma GCC unroll 8
    for (int c = 0; c < kC; ++c) {
        const int vec = first_vec + c;
        const typename Vec::F minimum = source.minimum(place, vec);
        const typename Vec::F low_minimum = source.half_minimum(place, 0, vec);
        const typename Vec::F high_minimum = source.half_minimum(place, 1, vec);
#pragma GCC unroll 8
        for (int r = 0; r < kR; ++r) {
            const typename Vec::F sum =
                Vec::fma(high_minimum, Vec::broadcast(x.field(r, kFieldHighSum)),
                         Vec::mul(low_minimum, Vec::broadcast(x.field(r, kFieldLowSum))));
            acc[r][c] = Vec::fma(minimum, Vec::mul(sum, Vec::broadcast(x.field(r, kFieldScale))),
                                 acc[r][c]);
        }
    }
}

// The same for formats with an integer scale for 16 values. Both products of a half and their sum
// are integers below 2^24, so float arithmetic on them is exact.
template <int kR, int kC, class Source>
[[gnu::always_inline]] inline void add_group_of_halves(const Source& source,
                                                       typename Source::Place place,
                                                       const RowCursor<kR>& x, int first_vec,
                                                       typename Source::Vec::F (&acc)[kR][kC]) {
    using Vec = typename Source::Vec;
    typename Vec::F low[kR][kC];
    typename Vec::F high[kR][kC];
    dot_steps<kR, kC, 0, 4>(source, place, x, first_vec, low);
    dot_steps<kR, kC, 4, 8>(source, place, x, first_vec, high);
#pragma GCC unroll 8
    for (int c = 0; c < kC; ++c) {
        const int vec = first_vec + c;
        const typename Vec::F scale = source.scale(place, vec);
        const typename Vec::F low_scale = source.half_scale(place, 0, vec);
        const typename Vec::F high_scale = source.half_scale(place, 1, vec);
#pragma GCC unroll 8
        for (int r = 0; r < kR; ++r) {
            const typename Vec::F dot =
                Vec::fma(high[r][c], high_scale, Vec::mul(low[r][c], low_scale));
            acc[r][c] =
                Vec::fma(dot, Vec::mul(scale, Vec::broadcast(x.field(r, kFieldScale))), acc[r][c]);
        }
    }
    if constexpr (Source::Shape::kMinimum)
        add_half_minima<kR, kC>(source, place, x, first_vec, acc);
}

// sums[r][32] += the chunk's groups, for kR rows and kC vectors of columns from first_vec on.
// next: the rows that are multiplied after these.
template <int kR, int kC, class Source>
[[gnu::always_inline]] inline void add_part(const Source& source, Work& work, const std::byte* next,
                                            int first_vec) {
    using Vec = typename Source::Vec;
    float* sums = work.sums + first_vec * Vec::kLanes;
    const std::int64_t groups = work.groups;
    Ahead ahead = work.ahead;
    RowCursor<kR> x(work.x, work.stride);
    RowCursor<kR> later(next, work.stride);
    typename Vec::F acc[kR][kC];
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 8
        for (int c = 0; c < kC; ++c)
            acc[r][c] = Vec::load(sums + r * kTileColumns + c * Vec::kLanes);
    for (std::int64_t group = 0; group < groups; ++group) {
        const typename Source::Place place = source.place(group);
        if constexpr (Source::Shape::kHalves) {
            add_group_of_halves<kR, kC>(source, place, x, first_vec, acc);
        } else {
            add_group<kR, kC>(source, place, x, first_vec, acc);
        }
        if (kR > 1 && first_vec == 0)
#pragma GCC unroll 8
            for (int r = 0; r < kR; ++r) fetch_near(later.codes(r));
        ahead.advance();
        x.advance();
        later.advance();
    }
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 8
        for (int c = 0; c < kC; ++c)
            Vec::store(sums + r * kTileColumns + c * Vec::kLanes, acc[r][c]);
    work.ahead = ahead;
}

// All columns of the tile for work.parts times kR rows; leaves `work` at the rows behind them.
template <int kR, class Source>
[[gnu::noinline]] void add_parts(const Source& source, Work& work) {
    using Vec = typename Source::Vec;
    constexpr int kC = kR == 1 ? Vec::kRowVecs : Vec::kVecs;
    for (; work.parts > 0; --work.parts) {
        const std::byte* next = work.parts > 1 ? work.x + kR * work.stride : work.then;
        for (int r = 0; r < kR && work.out != nullptr; ++r, work.out += work.out_stride) {
            fetch_to_write(work.out);
            fetch_to_write(work.out + kTileColumns / 2);
        }
        for (int vec = 0; vec < kTileColumns / Vec::kLanes; vec += kC)
            add_part<kR, kC>(source, work, next, vec);
        work.x += kR * work.stride;
        work.sums += kR * kTileColumns;
    }
}

// Picks the instance for kMin <= rows <= kMax.
template <int kMin, int kMax, class Source>
void add_parts_of(int rows, const Source& source, Work& work) {
    if constexpr (kMax > kMin) {
        if (rows < kMax) return add_parts_of<kMin, kMax - 1>(rows, source, work);
    }
    add_parts<kMax>(source, work);
}

// One tile, and the rows that meet it.
struct TileJob {
    const std::byte* tile;
    const std::byte* x;
    std::int64_t stride;
    std::int64_t groups;
    int rows;
    float* sums;
    float* out;
    std::int64_t out_stride;
};

template <class Vec, tensor::DType kDType>
constexpr int kGroupBytes =
    TileFormat<Vec, kDType>::kLayout.chunk_bytes / TileFormat<Vec, kDType>::kLayout.chunk_groups;

// All of K for a single row.
template <class Vec, tensor::DType kDType>
void multiply_row(const TileJob& job) {
    constexpr int kBytes = kGroupBytes<Vec, kDType>;
    const std::byte* ahead = job.tile + kAheadGroups * kBytes;
    Work work{job.x,   job.stride, job.sums, 1, job.groups, job.x, {ahead, ahead, kBytes},
              nullptr, 0};
    add_parts<1>(PackedTile<Vec, kDType>{job.tile, 0}, work);
}

// All of K for at most kRowBlock rows, a panel at a time.
template <class Vec, tensor::DType kDType>
void multiply_rows(const TileJob& job) {
    using Shape = ShapeOf<Vec, kDType>;
    constexpr int kMax = Shape::kHalves ? Vec::kHalfRows : Vec::kRows;
    constexpr int kMin = 2;  // a single row is never a part of more: kMax > 2
    constexpr int kBytes = kGroupBytes<Vec, kDType>;
    const RowCut cut(job.rows, kMax);
    const int passes = cut.parts * (kTileColumns / Vec::kLanes / Vec::kVecs);
    const int step = (kBytes + passes - 1) / passes;
    const std::int64_t chunk = job.rows <= kFewRows ? kFewRowsGroups : kPanelGroups;
    Panel panel;
    for (std::int64_t first = 0; first < job.groups; first += chunk) {
        const std::int64_t left = job.groups - first;
        const std::int64_t groups = left < chunk ? left : chunk;
        const std::byte* ahead = job.tile + (first + kAheadGroups) * kBytes;
        const std::byte* x = job.x + first * kRowGroupBytes;
        const std::byte* then = x + groups * kRowGroupBytes;
        Work work{x,
                  job.stride,
                  job.sums,
                  1,
                  groups,
                  cut.parts > 1 ? x + cut.size * job.stride : then,
                  {ahead, ahead, step},
                  groups == left ? job.out : nullptr,
                  job.out_stride};
        const KeptTile<Vec, kDType> kept{{job.tile, first}, panel};
        add_parts_of<kMin, kMax>(cut.larger > 0 ? cut.size + 1 : cut.size, kept, work);
        const PanelTile<Vec, Shape> source{panel};
        work.then = then;
        work.parts = cut.larger - 1;
        if (work.parts > 0) add_parts_of<kMin, kMax>(cut.size + 1, source, work);
        work.parts = cut.parts - (cut.larger > 0 ? cut.larger : 1);
        if (work.parts > 0) add_parts_of<kMin, kMax>(cut.size, source, work);
    }
}

template <class Vec, tensor::DType kDType>
void linear_int8_of(const LinearArgs& args) {
    const std::int64_t groups = args.weight.in_features / kGroupValues;
    const std::int64_t tile_bytes = groups * kGroupBytes<Vec, kDType>;
    alignas(64) float sums[kRowBlock * kTileColumns];
    for (std::int64_t column = args.column_begin; column < args.column_end;
         column += kTileColumns) {
        const std::byte* tile = args.weight.data + column / kTileColumns * tile_bytes;
        for (std::int64_t row = 0; row < args.rows; row += kRowBlock) {
            const int rows =
                args.rows - row < kRowBlock ? static_cast<int>(args.rows - row) : kRowBlock;
            for (int i = 0; i < rows * kTileColumns; ++i) sums[i] = 0;
            const TileJob job{tile,
                              args.in + row * args.in_stride,
                              args.in_stride,
                              groups,
                              rows,
                              sums,
                              args.out + row * args.out_stride + column,
                              args.out_stride};
            if (rows == 1) {
                multiply_row<Vec, kDType>(job);
            } else {
                multiply_rows<Vec, kDType>(job);
            }
            store_tile<Vec>(args, row, rows, column, sums);
        }
    }
}

}  // namespace
}  // namespace pagoda::kernels
