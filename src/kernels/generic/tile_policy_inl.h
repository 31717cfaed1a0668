#pragma once
// What an instruction set brings to the tile kernels: a struct TileVec in its tile_vec.h with
//
//   F, I             vectors of kLanes floats, and of kBytes = 4 * kLanes bytes
//   kBias            what signed weight codes are raised by: 128 where the dot product wants
//   unsigned
//                    weights, 0 where it takes signed ones
//   kRows, kVecs     rows and vectors of columns whose sums stay in registers together;
//                    kHalfRows for formats that need a third set; kRowVecs for a single row
//   kSlotValues      values of K that fma multiplies: 1, or 2 with load_pairs and round_pairs
//   zero ... fma     float arithmetic; load_* widen kLanes stored numbers to float
//   bytes            load_bytes, broadcast4 (four bytes to every lane), shift<bits> of 16-bit
//   lanes,
//                    look_up in 16 bytes, byte_to_float<j> (signed byte j of every lane)
//   begin, dot, finish
//                    the dot products of a group: sum = begin(start); sum = dot(sum, w, x) for each
//                    four values of K; finish gives start + the sum of all products as float,
//                    exactly
//
// And the shape of each weight type at compile time.

#include "kernels/generic/tile_layout_inl.h"

namespace pagoda::kernels {
namespace {

// What weight codes look like to the dot product.
enum class Domain {
    kUnsigned4,  // 0..15
    kUnsigned5,  // 0..31
    kSigned,     // -128..127, raised by kBias
};

// Which plane of the quantised row makes up for codes that are too high.
enum class Start { kNone, k8, k128 };

template <class Vec, tensor::DType kDType>
struct TileFormat {
    static constexpr WeightFormat kFormat = weight_format(kDType);
    static constexpr TileLayout kLayout = tile_layout(kFormat);
    static constexpr bool kMinimum = kFormat.has_minimum;
    static constexpr bool kHalves = kFormat.scales == ScaleKind::kSuper16;
    // Q4_0's codes stay as they are: 8 too high costs nothing, while raising them would.
    static constexpr bool kRaw =
        kFormat.values == nullptr &&
        (kFormat.zero == 0 || (kFormat.zero == 8 && kFormat.code_bits == 4));
    static constexpr Domain kDomain = !kRaw                    ? Domain::kSigned
                                      : kFormat.code_bits == 5 ? Domain::kUnsigned5
                                                               : Domain::kUnsigned4;
    static constexpr Start kStart = kRaw ? (kFormat.zero == 8 ? Start::k8 : Start::kNone)
                                         : (Vec::kBias == 128 ? Start::k128 : Start::kNone);
};

// What each 4-bit code stands for, raised by kBias.
template <tensor::DType kDType, int kBias>
struct CodeTable {
    alignas(16) std::uint8_t value[16] = {};
    constexpr CodeTable() {
        constexpr WeightFormat kFormat = weight_format(kDType);
        for (int code = 0; code < 16 && kFormat.values != nullptr; ++code)
            value[code] = static_cast<std::uint8_t>(kFormat.values[code] + kBias);
    }
};
template <tensor::DType kDType, int kBias>
constexpr CodeTable<kDType, kBias> kCodeTable{};

// Calls body with Index<kFrom> ... Index<kCount - 1>: a loop whose index is a constant.
template <int kValue>
struct Index {
    static constexpr int value = kValue;
};
template <int kCount, int kFrom = 0, class Body>
[[gnu::always_inline]] inline void unroll(const Body& body) {
    if constexpr (kFrom < kCount) {
        body(Index<kFrom>{});
        unroll<kCount, kFrom + 1>(body);
    }
}

}  // namespace
}  // namespace pagoda::kernels
