#pragma once
// Reads tiles: codes of a group as vectors of bytes, scales as vectors of floats. Vectors of
// columns are numbered through the tile.

#include "kernels/generic/tile_policy_inl.h"

namespace pagoda::kernels {
namespace {

// Bits 4 and up of the codes of step kStep (four values of K), in place.
template <class Vec, int kExtraBits, int kStep>
[[gnu::always_inline]] inline typename Vec::I high_bits(const std::byte* codes, int vec) {
    constexpr int kFrom = kStep * kExtraBits;  // first bit, counted through the planes
    const typename Vec::I plane =
        Vec::load_bytes(codes + (4 + kFrom / 8) * kStepBytes + vec * Vec::kBytes);
    constexpr int kMask = kExtraBits == 1 ? 0x10 : 0x30;
    return Vec::bit_and(Vec::template shift<kFrom % 8 - 4>(plane), Vec::set1_byte(kMask));
}

// What decode_step gives for codes that kRaw leaves alone.
enum class Codes { kAsDomain, kSigned };

// Codes of step kStep for one vector of columns: for the dot product (TileFormat::kDomain, raised
// by kBias if signed), or always as signed numbers raised by kBias.
template <class Vec, tensor::DType kDType, Codes kCodes, int kBias, int kStep>
[[gnu::always_inline]] inline typename Vec::I decode_step(const std::byte* codes, int vec) {
    using Format = TileFormat<Vec, kDType>;
    constexpr WeightFormat kFormat = Format::kFormat;
    constexpr TileLayout kLayout = Format::kLayout;
    typename Vec::I code;
    if constexpr (kLayout.byte_codes) {
        code = Vec::load_bytes(codes + kStep * kStepBytes + vec * Vec::kBytes);
    } else {
        const typename Vec::I nibbles =
            Vec::load_bytes(codes + kStep / 2 * kStepBytes + vec * Vec::kBytes);
        code = Vec::bit_and(Vec::template shift<4 * (kStep % 2)>(nibbles), Vec::set1_byte(15));
    }
    if constexpr (kLayout.extra_bits != 0)
        code = Vec::bit_or(code, high_bits<Vec, kLayout.extra_bits, kStep>(codes, vec));
    if constexpr (kFormat.values != nullptr) {
        return Vec::look_up(kCodeTable<kDType, kBias>.value, code);
    } else if constexpr ((Format::kRaw && kCodes == Codes::kAsDomain) || kFormat.zero == kBias) {
        return code;
    } else {
        return Vec::add_bytes(code, Vec::set1_byte(kBias - kFormat.zero));
    }
}

// Where group `group` of a tile lies.
struct GroupPlace {
    const std::byte* chunk;
    int group;  // in the chunk
};
template <class Format>
[[gnu::always_inline]] inline GroupPlace place_of(const std::byte* tile, std::int64_t group) {
    constexpr TileLayout kLayout = Format::kLayout;
    return {tile + group / kLayout.chunk_groups * kLayout.chunk_bytes,
            static_cast<int>(group % kLayout.chunk_groups)};
}
template <class Format>
[[gnu::always_inline]] inline const std::byte* codes_of(GroupPlace place) {
    return place.chunk + Format::kLayout.codes_offset +
           place.group * Format::kLayout.group_code_bytes;
}

// The scale that multiplies the group's integer dot product.
template <class Vec, tensor::DType kDType>
[[gnu::always_inline]] inline typename Vec::F decode_scale(GroupPlace place, int vec) {
    using Format = TileFormat<Vec, kDType>;
    const int column = vec * Vec::kLanes;
    if constexpr (Format::kFormat.scales == ScaleKind::kExponent)
        return Vec::load_bfloat(place.chunk + 2 * column);
    const typename Vec::F scale = Vec::load_half(place.chunk + 2 * column);
    if constexpr (Format::kFormat.scales != ScaleKind::kSuper32) return scale;
    return Vec::mul(scale, Vec::load_int8(place.chunk + Format::kLayout.sub_scale_offset +
                                          place.group * kTileColumns + column));
}

// The minimum that multiplies the activations' (for halves: weighted) sum.
template <class Vec, tensor::DType kDType>
[[gnu::always_inline]] inline typename Vec::F decode_minimum(GroupPlace place, int vec) {
    using Format = TileFormat<Vec, kDType>;
    const int column = vec * Vec::kLanes;
    const typename Vec::F minimum =
        Vec::load_half(place.chunk + Format::kLayout.minimum_offset + 2 * column);
    if constexpr (Format::kFormat.scales != ScaleKind::kSuper32) return minimum;
    return Vec::mul(minimum, Vec::load_uint8(place.chunk + Format::kLayout.sub_minimum_offset +
                                             place.group * kTileColumns + column));
}

// Integer scale and minimum of half a group.
template <class Vec, tensor::DType kDType>
[[gnu::always_inline]] inline typename Vec::F decode_half_scale(GroupPlace place, int half,
                                                                int vec) {
    using Format = TileFormat<Vec, kDType>;
    const std::byte* in = place.chunk + Format::kLayout.sub_scale_offset +
                          (2 * place.group + half) * kTileColumns + vec * Vec::kLanes;
    if constexpr (Format::kMinimum) return Vec::load_low_nibbles(in);
    return Vec::load_int8(in);
}
template <class Vec, tensor::DType kDType>
[[gnu::always_inline]] inline typename Vec::F decode_half_minimum(GroupPlace place, int half,
                                                                  int vec) {
    using Format = TileFormat<Vec, kDType>;
    return Vec::load_high_nibbles(place.chunk + Format::kLayout.sub_scale_offset +
                                  (2 * place.group + half) * kTileColumns + vec * Vec::kLanes);
}

}  // namespace
}  // namespace pagoda::kernels
