#include "kernels/tile32/pack.h"

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

void put_codes(const TileLayout& layout, const std::uint8_t* code, int column, std::byte* group) {
    auto* out = reinterpret_cast<std::uint8_t*>(group) + 4 * column;
    for (int k = 0; k < kGroupValues; ++k) {
        const int step = k / 4;
        const int j = k % 4;
        const int value = code[k];
        if (layout.byte_codes) {
            out[step * kStepBytes + j] = code[k];
            continue;
        }
        const int shift = 4 * (step % 2);
        auto& nibbles = out[step / 2 * kStepBytes + j];
        nibbles = static_cast<std::uint8_t>(nibbles | (value & 15) << shift);
        if (layout.extra_bits == 0) continue;
        const int bits = layout.extra_bits;  // 8 / bits steps share a byte
        auto& high = out[(4 + step * bits / 8) * kStepBytes + j];
        high = static_cast<std::uint8_t>(high | (value >> 4) << (step * bits % 8));
    }
}

// Where in a chunk a column's group goes.
struct Place {
    std::byte* chunk;
    int group;
    int column;
};

void put_sub_scales(const WeightFormat& format, const TileLayout& layout, const GroupFields& fields,
                    const Place& place) {
    const auto [chunk, group, column] = place;
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

// One column's values [0, K) into its tile, whose bytes are zeros.
void pack_column(const PackArgs& args, const std::byte* row, int column, std::byte* tile) {
    const WeightFormat format = weight_format(args.dtype);
    const TileLayout layout = tile_layout(format);
    for (std::int64_t g = 0; g < args.in_features / kGroupValues; ++g) {
        const GroupFields fields = group_fields(args.dtype, row, g);
        const int group = static_cast<int>(g % layout.chunk_groups);
        std::byte* chunk = tile + g / layout.chunk_groups * layout.chunk_bytes;
        if (group == 0) {
            put_half(chunk, 0, column, fields.scale);
            if (format.has_minimum) put_half(chunk, layout.minimum_offset, column, fields.minimum);
        }
        if (format.is_super()) put_sub_scales(format, layout, fields, {chunk, group, column});
        put_codes(layout, fields.code, column,
                  chunk + layout.codes_offset + group * layout.group_code_bytes);
    }
}

void pack_plain_column(const PackArgs& args, const std::byte* row, int column, std::byte* tile) {
    const std::int64_t size = args.dtype == tensor::DType::kF32 ? 4 : 2;
    for (std::int64_t k = 0; k < args.in_features; ++k)
        std::memcpy(tile + (k * kTileColumns + column) * size, row + k * size, index(size));
}

}  // namespace

std::size_t packed_bytes(tensor::DType dtype, std::int64_t out, std::int64_t in) {
    return index((out + kTileColumns - 1) / kTileColumns) * tile_bytes(dtype, in);
}

void pack(const PackArgs& args) noexcept {
    const std::size_t bytes = tile_bytes(args.dtype, args.in_features);
    const std::size_t row_bytes = tensor::row_bytes(args.dtype, args.in_features);
    const bool plain = weight_format(args.dtype).scales == ScaleKind::kPlain;
    for (std::int64_t first = args.column_begin; first < args.column_end; first += kTileColumns) {
        std::byte* tile = args.packed + index(first / kTileColumns) * bytes;
        std::memset(tile, 0, bytes);
        for (int column = 0; column < kTileColumns && first + column < args.column_end; ++column) {
            const std::byte* row = args.source + index(first + column) * row_bytes;
            if (plain) {
                pack_plain_column(args, row, column, tile);
            } else {
                pack_column(args, row, column, tile);
            }
        }
    }
}

std::size_t quantized_row_bytes(std::int64_t cols) {
    const std::size_t groups = index((cols + kGroupValues - 1) / kGroupValues);
    // An odd number of lines: rows that lie a power of two apart would share few lines of L1.
    return (groups | 1) * kRowGroupBytes;
}

}  // namespace pagoda::kernels::tile32
