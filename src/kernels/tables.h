#pragma once
// The tables of the variants, as registry.cpp lists them: one symbol per variant is all that the
// rest of the program sees of it. A null entry is inherited from the parent.

#include "kernels/kernels.h"

namespace pagoda::kernels {

// Tags of weight layouts (PackedWeightView::layout).
inline constexpr std::uint32_t kLayoutRows = 1;    // ref: rows as stored
inline constexpr std::uint32_t kLayoutTile32 = 2;  // generic/tile_layout_inl.h

// Their versions, raised whenever packing a weight gives other bytes than before: packed weights
// that were kept on disk are then packed anew (packed_layout_test.cpp).
inline constexpr std::uint32_t kLayoutRowsVersion = 1;
inline constexpr std::uint32_t kLayoutTile32Version = 1;

extern const Kernels table_ref;
extern const Kernels table_avx2;
extern const Kernels table_avx_vnni;
extern const Kernels table_avx512_vnni;
extern const Kernels table_avx512_bf16;

}  // namespace pagoda::kernels
