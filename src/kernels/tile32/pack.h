#pragma once
// Packs weights into the layout of generic/tile_layout_inl.h. Plain C++ for any machine: packing
// happens once, at load, on all threads. Pure functions.

#include "kernels/args.h"

namespace pagoda::kernels::tile32 {

inline constexpr std::int64_t kColumns = 32;

std::size_t packed_bytes(tensor::DType dtype, std::int64_t out, std::int64_t in);
void pack(const PackArgs& args) noexcept;

// Bytes of a quantised row: a whole, odd number of cache lines, so that consecutive rows do not
// compete for the same cache sets.
std::size_t quantized_row_bytes(std::int64_t cols);

}  // namespace pagoda::kernels::tile32
