#pragma once
// Block-quantised weights times int8 activations, over a Vec policy. The order of every sum is that
// of ref/linear.cpp: one accumulator per output, groups ascending, so the number of rows, the path
// and the tile change no bit.
//
// Two paths share one inner loop (add_groups). A single row reads the packed codes straight into
// the dot product. More rows first decode a few groups of the tile into a panel that stays in L1,
// which all rows of a block then use, kRows at a time.

#include "kernels/args.h"
#include "kernels/generic/decode_inl.h"
#include "kernels/generic/store_inl.h"

namespace pagoda::kernels {
namespace {

constexpr int kRowBlock = 96;     // rows that share a panel
constexpr int kPanelGroups = 8;   // groups of a panel: 8 KiB of codes
constexpr int kAheadGroups = 16;  // how far the rows of a packed tile fetch ahead: 9 KiB of Q4_0

// Activation rows: codes of group g at row + 32 g, plane values of group g at row + K + ...
struct Int8Rows {
    const std::byte* first;
    std::int64_t stride;
    std::int64_t groups;

    [[gnu::always_inline]] const std::byte* codes(int row, std::int64_t group) const {
        return first + row * stride + group * kGroupValues;
    }
    [[gnu::always_inline]] const std::byte* plane(int row, RowPlane plane,
                                                  std::int64_t group) const {
        return first + row * stride + groups * kGroupValues + (plane * groups + group) * 4;
    }
};

// The properties of a weight type that the inner loop depends on.
template <Domain kDomainOf, Start kStartOf, bool kMinimumOf, bool kHalvesOf>
struct Shape {
    static constexpr Domain kDomain = kDomainOf;
    static constexpr Start kStart = kStartOf;
    static constexpr bool kMinimum = kMinimumOf;
    static constexpr bool kHalves = kHalvesOf;
};
template <class Vec, tensor::DType kDType>
using ShapeOf = Shape<TileFormat<Vec, kDType>::kDomain, TileFormat<Vec, kDType>::kStart,
                      TileFormat<Vec, kDType>::kMinimum, TileFormat<Vec, kDType>::kHalves>;

// Asks for the memory of one group. A tile is a linear stream, and so are the tiles of a range:
// what lies beyond the end is the next one's.
template <class Vec, tensor::DType kDType>
[[gnu::always_inline]] inline void prefetch_group(const std::byte* tile, std::int64_t group) {
    constexpr TileLayout kLayout = TileFormat<Vec, kDType>::kLayout;
    constexpr int kBytes = kLayout.chunk_bytes / kLayout.chunk_groups;
    const std::byte* from = tile + group * kBytes;
#pragma GCC unroll 20
    for (int at = 0; at < kBytes; at += 64) Vec::prefetch(from + at);
}

// Weights as packed. `group` counts from the tile's begin.
template <class V, tensor::DType kDType>
struct PackedTile {
    using Vec = V;
    using Shape = ShapeOf<Vec, kDType>;
    using Place = GroupPlace;
    const std::byte* tile;

    [[gnu::always_inline]] Place place(std::int64_t group) const {
        prefetch_group<Vec, kDType>(tile, group + kAheadGroups);
        return place_of<TileFormat<Vec, kDType>>(tile, group);
    }
    template <int kStep>
    [[gnu::always_inline]] typename Vec::I codes(Place place, int vec) const {
        return decode_step<Vec, kDType, Codes::kAsDomain, Vec::kBias, kStep>(
            codes_of<TileFormat<Vec, kDType>>(place), vec);
    }
    [[gnu::always_inline]] typename Vec::F scale(Place place, int vec) const {
        return decode_scale<Vec, kDType>(place, vec);
    }
    [[gnu::always_inline]] typename Vec::F minimum(Place place, int vec) const {
        return decode_minimum<Vec, kDType>(place, vec);
    }
    [[gnu::always_inline]] typename Vec::F half_scale(Place place, int half, int vec) const {
        return decode_half_scale<Vec, kDType>(place, half, vec);
    }
    [[gnu::always_inline]] typename Vec::F half_minimum(Place place, int half, int vec) const {
        return decode_half_minimum<Vec, kDType>(place, half, vec);
    }
};

// A few groups of a tile, decoded.
struct Panel {
    alignas(64) std::byte codes[kPanelGroups * 8 * kStepBytes];
    alignas(64) float scale[kPanelGroups * kTileColumns];
    alignas(64) float minimum[kPanelGroups * kTileColumns];
    alignas(64) float half_scale[kPanelGroups * 2 * kTileColumns];
    alignas(64) float half_minimum[kPanelGroups * 2 * kTileColumns];
};

// The panel with the interface of PackedTile; `first` is the group that it starts with. While it is
// multiplied, the memory of the panel after it comes in, group by group.
template <class V, class S>
struct PanelTile {
    using Vec = V;
    using Shape = S;
    using Place = std::int64_t;
    const Panel* panel;
    std::int64_t first;
    const std::byte* ahead;    // first byte to fetch, or null
    std::int64_t ahead_bytes;  // for each group

    [[gnu::always_inline]] Place place(std::int64_t group) const {
        if (ahead != nullptr) {
            const std::byte* from = ahead + (group - first) * ahead_bytes;
            for (std::int64_t at = 0; at < ahead_bytes; at += 64) Vec::prefetch(from + at);
        }
        return group - first;
    }
    template <int kStep>
    [[gnu::always_inline]] typename Vec::I codes(Place place, int vec) const {
        return Vec::load_bytes(panel->codes + (place * 8 + kStep) * kStepBytes + vec * Vec::kBytes);
    }
    [[gnu::always_inline]] typename Vec::F scale(Place place, int vec) const {
        return Vec::load(panel->scale + place * kTileColumns + vec * Vec::kLanes);
    }
    [[gnu::always_inline]] typename Vec::F minimum(Place place, int vec) const {
        return Vec::load(panel->minimum + place * kTileColumns + vec * Vec::kLanes);
    }
    [[gnu::always_inline]] typename Vec::F half_scale(Place place, int half, int vec) const {
        return Vec::load(panel->half_scale + (2 * place + half) * kTileColumns + vec * Vec::kLanes);
    }
    [[gnu::always_inline]] typename Vec::F half_minimum(Place place, int half, int vec) const {
        return Vec::load(panel->half_minimum + (2 * place + half) * kTileColumns +
                         vec * Vec::kLanes);
    }
};

template <class Vec, tensor::DType kDType>
void decode_panel(const std::byte* tile, std::int64_t first, std::int64_t groups, Panel& panel) {
    using Format = TileFormat<Vec, kDType>;
    constexpr int kVecs = kTileColumns / Vec::kLanes;
    for (std::int64_t g = 0; g < groups; ++g) {
        const GroupPlace place = place_of<Format>(tile, first + g);
        const std::byte* codes = codes_of<Format>(place);
        for (int vec = 0; vec < kVecs; ++vec) {
            unroll<8>([&](auto step) {
                Vec::store_bytes(
                    panel.codes + (g * 8 + step.value) * kStepBytes + vec * Vec::kBytes,
                    decode_step<Vec, kDType, Codes::kAsDomain, Vec::kBias, decltype(step)::value>(
                        codes, vec));
            });
            const std::int64_t at = g * kTileColumns + vec * Vec::kLanes;
            Vec::store(panel.scale + at, decode_scale<Vec, kDType>(place, vec));
            if constexpr (Format::kMinimum)
                Vec::store(panel.minimum + at, decode_minimum<Vec, kDType>(place, vec));
            if constexpr (Format::kHalves) {
                for (int half = 0; half < 2; ++half) {
                    const std::int64_t half_at = (2 * g + half) * kTileColumns + vec * Vec::kLanes;
                    Vec::store(panel.half_scale + half_at,
                               decode_half_scale<Vec, kDType>(place, half, vec));
                    if constexpr (Format::kMinimum)
                        Vec::store(panel.half_minimum + half_at,
                                   decode_half_minimum<Vec, kDType>(place, half, vec));
                }
            }
        }
    }
}

// Plane of the start values of a dot product over a whole group, or over half of one.
template <class Shape>
constexpr RowPlane start_plane(int half) {
    if (Shape::kStart == Start::k8) return kPlaneStart8;
    if (!Shape::kHalves) return kPlaneStart128;
    return half == 0 ? kPlaneStart128Low : kPlaneStart128High;
}

// A group of K and where a tile has it: found once, since finding it fetches ahead.
template <class Tile>
struct GroupAt {
    std::int64_t group;
    typename Tile::Place place;
};

// dot[r][c] = integer dot product of steps [kFromStep, kToStep) of a group, as float.
template <int kR, int kC, int kFromStep, int kToStep, class Tile>
[[gnu::always_inline]] inline void dot_steps(const Tile& tile, GroupAt<Tile> at, const Int8Rows& x,
                                             int first_vec, typename Tile::Vec::F (&out)[kR][kC]) {
    using Vec = typename Tile::Vec;
    const auto [group, place] = at;
    using Shape = typename Tile::Shape;
    constexpr bool kStarts = Shape::kStart != Start::kNone;
    constexpr RowPlane kPlane = start_plane<Shape>(kFromStep / 4);
    typename Vec::I sum[kR][kC];
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 8
        for (int c = 0; c < kC; ++c)
            sum[r][c] = Vec::template begin<Shape::kDomain, kStarts>(x.plane(r, kPlane, group));
    unroll<kToStep, kFromStep>([&](auto step) {
        constexpr int kStep = decltype(step)::value;
        typename Vec::I w[kC];
#pragma GCC unroll 8
        for (int c = 0; c < kC; ++c) w[c] = tile.template codes<kStep>(place, first_vec + c);
#pragma GCC unroll 8
        for (int r = 0; r < kR; ++r) {
            const typename Vec::I values = Vec::broadcast4(x.codes(r, group) + 4 * kStep);
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
                Vec::template finish<Shape::kDomain, kStarts>(sum[r][c], x.plane(r, kPlane, group));
}

// acc += one group, for formats with one scale for 32 values.
template <int kR, int kC, class Tile>
[[gnu::always_inline]] inline void add_group(const Tile& tile, const Int8Rows& x,
                                             std::int64_t group, int first_vec,
                                             typename Tile::Vec::F (&acc)[kR][kC]) {
    using Vec = typename Tile::Vec;
    const typename Tile::Place place = tile.place(group);
    typename Vec::F dot[kR][kC];
    dot_steps<kR, kC, 0, 8>(tile, {group, place}, x, first_vec, dot);
#pragma GCC unroll 8
    for (int c = 0; c < kC; ++c) {
        const typename Vec::F scale = tile.scale(place, first_vec + c);
#pragma GCC unroll 8
        for (int r = 0; r < kR; ++r)
            acc[r][c] =
                Vec::fma(dot[r][c], Vec::mul(scale, Vec::broadcast(x.plane(r, kPlaneScale, group))),
                         acc[r][c]);
        if constexpr (Tile::Shape::kMinimum) {
            const typename Vec::F minimum = tile.minimum(place, first_vec + c);
#pragma GCC unroll 8
            for (int r = 0; r < kR; ++r)
                acc[r][c] = Vec::fma(minimum, Vec::broadcast(x.plane(r, kPlaneScaledSum, group)),
                                     acc[r][c]);
        }
    }
}

// The same for formats with an integer scale for 16 values. Both products of a half and their sum
// are integers below 2^24, so float arithmetic on them is exact.
template <int kR, int kC, class Tile>
[[gnu::always_inline]] inline void add_group_of_halves(const Tile& tile, const Int8Rows& x,
                                                       std::int64_t group, int first_vec,
                                                       typename Tile::Vec::F (&acc)[kR][kC]) {
    using Vec = typename Tile::Vec;
    const typename Tile::Place place = tile.place(group);
    typename Vec::F low[kR][kC];
    typename Vec::F high[kR][kC];
    dot_steps<kR, kC, 0, 4>(tile, {group, place}, x, first_vec, low);
    dot_steps<kR, kC, 4, 8>(tile, {group, place}, x, first_vec, high);
#pragma GCC unroll 8
    for (int c = 0; c < kC; ++c) {
        const int vec = first_vec + c;
        const typename Vec::F scale = tile.scale(place, vec);
        const typename Vec::F low_scale = tile.half_scale(place, 0, vec);
        const typename Vec::F high_scale = tile.half_scale(place, 1, vec);
#pragma GCC unroll 8
        for (int r = 0; r < kR; ++r) {
            const typename Vec::F dot =
                Vec::fma(high[r][c], high_scale, Vec::mul(low[r][c], low_scale));
            acc[r][c] = Vec::fma(
                dot, Vec::mul(scale, Vec::broadcast(x.plane(r, kPlaneScale, group))), acc[r][c]);
        }
        if constexpr (Tile::Shape::kMinimum) {
            const typename Vec::F minimum = tile.minimum(place, vec);
            const typename Vec::F low_minimum = tile.half_minimum(place, 0, vec);
            const typename Vec::F high_minimum = tile.half_minimum(place, 1, vec);
#pragma GCC unroll 8
            for (int r = 0; r < kR; ++r) {
                const typename Vec::F sum = Vec::fma(
                    high_minimum, Vec::broadcast(x.plane(r, kPlaneHighSum, group)),
                    Vec::mul(low_minimum, Vec::broadcast(x.plane(r, kPlaneLowSum, group))));
                acc[r][c] =
                    Vec::fma(minimum, Vec::mul(sum, Vec::broadcast(x.plane(r, kPlaneScale, group))),
                             acc[r][c]);
            }
        }
    }
}

struct GroupRange {
    std::int64_t begin, end;
};

// sums[r][32] += groups of a range, for kR rows and kC vectors of columns from first_vec on.
template <int kR, int kC, class Tile>
void add_groups(const Tile& tile, const Int8Rows& x, GroupRange range, int first_vec, float* sums) {
    using Vec = typename Tile::Vec;
    typename Vec::F acc[kR][kC];
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 8
        for (int c = 0; c < kC; ++c)
            acc[r][c] = Vec::load(sums + r * kTileColumns + (first_vec + c) * Vec::kLanes);
    for (std::int64_t group = range.begin; group < range.end; ++group) {
        if constexpr (Tile::Shape::kHalves) {
            add_group_of_halves<kR, kC>(tile, x, group, first_vec, acc);
        } else {
            add_group<kR, kC>(tile, x, group, first_vec, acc);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r)
#pragma GCC unroll 8
        for (int c = 0; c < kC; ++c)
            Vec::store(sums + r * kTileColumns + (first_vec + c) * Vec::kLanes, acc[r][c]);
}

template <int kR, class Tile>
void add_groups_to_rows(const Tile& tile, const Int8Rows& x, GroupRange range, float* sums) {
    using Vec = typename Tile::Vec;
    constexpr int kC = kR == 1 ? Vec::kRowVecs : Vec::kVecs;
    for (int vec = 0; vec < kTileColumns / Vec::kLanes; vec += kC)
        add_groups<kR, kC>(tile, x, range, vec, sums);
}

// Picks the instance for `rows` <= kMax.
template <int kMax, class Tile>
void add_groups_to(int rows, const Tile& tile, const Int8Rows& x, GroupRange range, float* sums) {
    if constexpr (kMax > 1) {
        if (rows < kMax) return add_groups_to<kMax - 1>(rows, tile, x, range, sums);
    }
    add_groups_to_rows<kMax>(tile, x, range, sums);
}

// All of K for at most kRowBlock rows, panel by panel.
template <class Vec, tensor::DType kDType>
void multiply_block(const std::byte* tile, const Int8Rows& x, int rows, float* sums) {
    using Shape = ShapeOf<Vec, kDType>;
    constexpr int kMax = Shape::kHalves ? Vec::kHalfRows : Vec::kRows;
    const std::int64_t groups = x.groups;
    const int parts = (rows + kMax - 1) / kMax;
    Panel panel;
    for (std::int64_t first = 0; first < groups; first += kPanelGroups) {
        const GroupRange range{first,
                               first + kPanelGroups < groups ? first + kPanelGroups : groups};
        decode_panel<Vec, kDType>(tile, first, range.end - first, panel);
        constexpr TileLayout kLayout = TileFormat<Vec, kDType>::kLayout;
        constexpr int kGroupBytes = kLayout.chunk_bytes / kLayout.chunk_groups;
        int row = 0;
        for (int part = 0; part < parts; ++part) {
            const PanelTile<Vec, Shape> source{
                &panel, first, part == 0 ? tile + range.end * kGroupBytes : nullptr, kGroupBytes};
            const int count = (rows - row + parts - part - 1) / (parts - part);
            const Int8Rows part_rows{x.first + row * x.stride, x.stride, groups};
            add_groups_to<kMax>(count, source, part_rows, range, sums + row * kTileColumns);
            row += count;
        }
    }
}

template <class Vec, tensor::DType kDType>
void linear_int8_of(const LinearArgs& args) {
    using Format = TileFormat<Vec, kDType>;
    const std::int64_t groups = args.weight.in_features / kGroupValues;
    const std::int64_t tile_bytes =
        groups / Format::kLayout.chunk_groups * Format::kLayout.chunk_bytes;
    constexpr int kDirectRows = Format::kHalves ? Vec::kHalfRows : Vec::kRows;
    alignas(64) float sums[kRowBlock * kTileColumns];
    for (std::int64_t column = args.column_begin; column < args.column_end;
         column += kTileColumns) {
        const std::byte* tile = args.weight.data + column / kTileColumns * tile_bytes;
        for (std::int64_t row = 0; row < args.rows; row += kRowBlock) {
            const int rows =
                args.rows - row < kRowBlock ? static_cast<int>(args.rows - row) : kRowBlock;
            const Int8Rows x{args.in + row * args.in_stride, args.in_stride, groups};
            for (int i = 0; i < rows * kTileColumns; ++i) sums[i] = 0;
            if (rows <= kDirectRows) {
                const PackedTile<Vec, kDType> packed{tile};
                add_groups_to<kDirectRows>(rows, packed, x, GroupRange{0, groups}, sums);
            } else {
                multiply_block<Vec, kDType>(tile, x, rows, sums);
            }
            store_tile<Vec>(args, row, rows, column, sums);
        }
    }
}

}  // namespace
}  // namespace pagoda::kernels
