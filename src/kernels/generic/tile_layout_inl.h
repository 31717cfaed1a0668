#pragma once
// The weight layout kLayoutTile32, shared by the x86 vector variants (pack: tile32/pack.cpp).
//
// Outputs are cut into tiles of 32 columns, the last one filled up with zeros. A tile is one linear
// stream over K, so that a kernel reads memory in order. Block-quantised types: chunks of 32 values
// (256 for the super-block types), each
//
//   d[32] f16 (bf16 for MXFP4) | minimum[32] f16, if any | sub-scales | codes of each group of 32
//
//   sub-scales, kSuper32   scale[8 groups][32 columns] int8 | minimum[8][32] uint8, if any
//               kSuper16   scale[16 halves][32] int8; Q2_K: scale | minimum << 4
//
//   codes, up to 4 bits    nibbles[4 pairs][32 columns][4]: byte (p, c, j) holds k = 8p + j of
//   column
//                          c in its low half and k = 8p + 4 + j in its high half
//          5 bits          and high[32][4]: bit s of byte (c, j) is bit 4 of k = 4s + j
//          6 bits          and high[2][32][4]: bits 2t, 2t+1 of (e, c, j) are bits 4, 5 of
//                          k = 16e + 4t + j
//          8 bits          code[8 steps][32][4]: byte (s, c, j) is k = 4s + j
//
// Four consecutive k of a column are one 32-bit lane: the operand of a dot-product instruction.
// Plain types: value[k][32 columns].

#include "kernels/weight_format.h"

namespace pagoda::kernels {
namespace {

constexpr int kTileColumns = 32;
constexpr int kGroupValues = 32;
constexpr int kSuperGroups = 8;
constexpr int kStepBytes = kTileColumns * 4;  // 4 values of K for the whole tile

struct TileLayout {
    int chunk_groups = 1;
    int extra_bits = 0;  // beyond the nibbles
    bool byte_codes = false;
    int minimum_offset = 0;      // of f16 minima, in the chunk
    int sub_scale_offset = 0;    // of integer scales
    int sub_minimum_offset = 0;  // of integer minima
    int codes_offset = 0;
    int group_code_bytes = 0;
    int chunk_bytes = 0;
};

constexpr TileLayout tile_layout(WeightFormat format) {
    TileLayout layout;
    layout.chunk_groups = format.is_super() ? kSuperGroups : 1;
    layout.byte_codes = format.code_bits == 8;
    layout.extra_bits = format.code_bits > 4 && format.code_bits < 8 ? format.code_bits - 4 : 0;
    int offset = 2 * kTileColumns;
    layout.minimum_offset = offset;
    if (format.has_minimum) offset += 2 * kTileColumns;
    layout.sub_scale_offset = offset;
    if (format.scales == ScaleKind::kSuper32) offset += kSuperGroups * kTileColumns;
    if (format.scales == ScaleKind::kSuper16) offset += 2 * kSuperGroups * kTileColumns;
    layout.sub_minimum_offset = offset;
    if (format.scales == ScaleKind::kSuper32 && format.has_minimum)
        offset += kSuperGroups * kTileColumns;
    layout.codes_offset = offset;
    layout.group_code_bytes =
        layout.byte_codes ? 8 * kStepBytes : (4 + layout.extra_bits) * kStepBytes;
    layout.chunk_bytes = offset + layout.chunk_groups * layout.group_code_bytes;
    return layout;
}

// A quantised row: for each group one line of 64 bytes, the codes int8[32] and then fields of 32
// bits, so that a group of a row is one line of the cache.
constexpr int kRowGroupBytes = 64;
enum RowField {          // in units of 4 bytes from the group's begin
    kFieldScale = 8,     // f32
    kFieldScaledSum,     // f32, scale * float(sum of codes): what a minimum is multiplied with
    kFieldStart8,        // int32, -8 * sum: start of a dot product with codes that are 8 too high
    kFieldStart128,      // int32, -128 * sum
    kFieldStart128Low,   // -128 * sum of the codes of the first 16 values,
    kFieldStart128High,  // and of the last
    kFieldLowSum,        // f32, float(sum) of the first 16,
    kFieldHighSum,       // and of the last
    kFieldEnd,
};
static_assert(kFieldEnd * 4 == kRowGroupBytes);

}  // namespace
}  // namespace pagoda::kernels
