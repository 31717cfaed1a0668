#include "kernels/tile32/pack.h"

#include <algorithm>
#include <cstring>

#include "kernels/generic/tile_layout_inl.h"
#include "kernels/group_fields.h"

namespace pagoda::kernels::tile32 {
namespace {

static_assert(kColumns == kTileColumns);

std::size_t index(std::int64_t value) {
    return static_cast<std::size_t>(value);
}

std::size_t tile_bytes(tensor::DType dtype, std::int64_t in) {
    const WeightFormat format = weight_format(dtype);
    if (format.scales == ScaleKind::kPlain)
        return index(in) * kTileColumns * (dtype == tensor::DType::kF32 ? 4 : 2);
    const TileLayout layout = tile_layout(format);
    return index(in / (kGroupValues * layout.chunk_groups)) * index(layout.chunk_bytes);
}

// Four codes of consecutive k, in memory order: one lane of the tile.
using Lane = std::uint32_t;
constexpr int kLanes = kGroupValues / 4;
constexpr Lane kLowNibbles = 0x0f0f0f0f;

void put_lane(std::byte* group, int step, int column, Lane lane) {
    std::memcpy(group + step * kStepBytes + 4 * column, &lane, sizeof(lane));
}

void put_codes(const TileLayout& layout, const std::uint8_t* code, int column, std::byte* group) {
    Lane lanes[kLanes];
    std::memcpy(lanes, code, sizeof(lanes));
    if (layout.byte_codes) {
        for (int step = 0; step < kLanes; ++step) put_lane(group, step, column, lanes[step]);
        return;
    }
    for (int pair = 0; pair < kLanes / 2; ++pair) {
        const Lane low = lanes[2 * pair] & kLowNibbles;
        const Lane high = lanes[2 * pair + 1] & kLowNibbles;
        put_lane(group, pair, column, low | high << 4);
    }
    const int bits = layout.extra_bits;  // 8 / bits steps share a byte
    Lane shared = 0;
    for (int step = 0; bits != 0 && step < kLanes; ++step) {
        const int shift = step * bits % 8;
        shared |= (lanes[step] >> 4 & kLowNibbles) << shift;
        if (shift + bits < 8) continue;
        put_lane(group, kLanes / 2 + step * bits / 8, column, shared);
        shared = 0;
    }
}

// A column's place in a chunk.
struct Place {
    std::byte* chunk;
    int column;
};

void put_sub_scales(const WeightFormat& format, const TileLayout& layout, const GroupFields& fields,
                    int group, const Place& place) {
    const auto [chunk, column] = place;
    auto* scales = reinterpret_cast<std::uint8_t*>(chunk) + layout.sub_scale_offset + column;
    if (format.scales == ScaleKind::kSuper32) {
        scales[group * kTileColumns] = static_cast<std::uint8_t>(fields.half_scale[0]);
        if (format.has_minimum)
            reinterpret_cast<std::uint8_t*>(
                chunk)[layout.sub_minimum_offset + group * kTileColumns + column] =
                fields.half_minimum[0];
        return;
    }
    for (int half = 0; half < 2; ++half) {
        const int scale = fields.half_scale[half] & 255;
        const int minimum = format.has_minimum ? fields.half_minimum[half] << 4 : 0;
        scales[(2 * group + half) * kTileColumns] = static_cast<std::uint8_t>(scale | minimum);
    }
}

void put_half(std::byte* chunk, int offset, int column, std::uint16_t bits) {
    std::memcpy(chunk + offset + 2 * column, &bits, 2);
}

// The columns of one tile: `rows` is their first row in the file.
struct TileColumns {
    const std::byte* rows;
    std::size_t row_bytes;
    int count;

    [[nodiscard]] const std::byte* row(int column) const {
        return rows + index(column) * row_bytes;
    }
};

// One column's groups [first_group, first_group + chunk_groups) into their chunk.
void pack_chunk(tensor::DType dtype, const std::byte* row, std::int64_t first_group,
                const Place& place) {
    const WeightFormat format = weight_format(dtype);
    const TileLayout layout = tile_layout(format);
    const auto [chunk, column] = place;
    for (int group = 0; group < layout.chunk_groups; ++group) {
        const GroupFields fields = group_fields(dtype, row, first_group + group);
        if (group == 0) {
            put_half(chunk, 0, column, fields.scale);
            if (format.has_minimum) put_half(chunk, layout.minimum_offset, column, fields.minimum);
        }
        if (format.is_super()) put_sub_scales(format, layout, fields, group, place);
        put_codes(layout, fields.code, column,
                  chunk + layout.codes_offset + group * layout.group_code_bytes);
    }
}

// Chunk after chunk, each with all its columns, so that the tile is written in order.
void pack_tile(const PackArgs& args, const TileColumns& columns, std::byte* tile) {
    const TileLayout layout = tile_layout(weight_format(args.dtype));
    const std::int64_t groups = args.in_features / kGroupValues;
    for (std::int64_t group = 0; group < groups; group += layout.chunk_groups) {
        for (int column = 0; column < columns.count; ++column)
            pack_chunk(args.dtype, columns.row(column), group, {tile, column});
        tile += layout.chunk_bytes;
    }
}

template <class Value>
void pack_plain_tile(std::int64_t in, const TileColumns& columns, std::byte* tile) {
    constexpr std::int64_t kRun = 64;  // values of K at a time, so that their lines stay in L1
    for (std::int64_t first = 0; first < in; first += kRun) {
        const std::int64_t count = std::min(kRun, in - first);
        for (int column = 0; column < columns.count; ++column) {
            Value run[kRun];
            std::memcpy(run, columns.row(column) + index(first) * sizeof(Value),
                        index(count) * sizeof(Value));
            auto* out = reinterpret_cast<Value*>(tile) + first * kTileColumns + column;
            for (std::int64_t k = 0; k < count; ++k) out[k * kTileColumns] = run[k];
        }
    }
}

}  // namespace

std::size_t packed_bytes(tensor::DType dtype, std::int64_t out, std::int64_t in) {
    return index((out + kTileColumns - 1) / kTileColumns) * tile_bytes(dtype, in);
}

void pack(const PackArgs& args) noexcept {
    const std::size_t bytes = tile_bytes(args.dtype, args.in_features);
    const std::size_t row_bytes = tensor::row_bytes(args.dtype, args.in_features);
    const bool is_plain = weight_format(args.dtype).scales == ScaleKind::kPlain;
    for (std::int64_t first = args.column_begin; first < args.column_end; first += kTileColumns) {
        std::byte* tile = args.packed + index(first / kTileColumns) * bytes;
        const std::int64_t count = std::min<std::int64_t>(kTileColumns, args.column_end - first);
        const TileColumns columns{args.source + index(first) * row_bytes, row_bytes,
                                  static_cast<int>(count)};
        if (count < kTileColumns) std::memset(tile, 0, bytes);
        if (!is_plain) {
            pack_tile(args, columns, tile);
        } else if (args.dtype == tensor::DType::kF32) {
            pack_plain_tile<std::uint32_t>(args.in_features, columns, tile);
        } else {
            pack_plain_tile<std::uint16_t>(args.in_features, columns, tile);
        }
    }
}

std::size_t quantized_row_bytes(std::int64_t cols) {
    const std::size_t groups = index((cols + kGroupValues - 1) / kGroupValues);
    // An odd number of lines: rows that lie a power of two apart would share few lines of L1.
    return (groups | 1) * kRowGroupBytes;
}

}  // namespace pagoda::kernels::tile32
