#pragma once
// Sums of a tile to the output rows: bias, then what the output held, as LinearArgs says.

#include "kernels/args.h"
#include "kernels/generic/tile_layout_inl.h"

namespace pagoda::kernels {
namespace {

// sums: [rows][32] for the tile that starts at `column`; columns beyond the range are not stored.
template <class Vec>
void store_tile(const LinearArgs& args, std::int64_t first_row, int rows, std::int64_t column,
                const float* sums) {
    const std::int64_t left = args.column_end - column;
    const int count = left < kTileColumns ? static_cast<int>(left) : kTileColumns;
    const int whole = count / Vec::kLanes * Vec::kLanes;
    const float* bias = args.bias == nullptr ? nullptr : args.bias + column;
    for (int r = 0; r < rows; ++r) {
        float* out = args.out + (first_row + r) * args.out_stride + column;
        const float* sum = sums + r * kTileColumns;
        for (int c = 0; c < whole; c += Vec::kLanes) {
            typename Vec::F value = Vec::load(sum + c);
            if (bias != nullptr) value = Vec::add(value, Vec::load(bias + c));
            if (args.accumulate) value = Vec::add(Vec::load(out + c), value);
            Vec::store(out + c, value);
        }
        for (int c = whole; c < count; ++c) {
            const float value = bias == nullptr ? sum[c] : sum[c] + bias[c];
            out[c] = args.accumulate ? out[c] + value : value;
        }
    }
}

}  // namespace
}  // namespace pagoda::kernels
