#pragma once
// The 256-bit vectors of avx2 with VPDPBUSD (what each member means: tile_policy_inl.h).

#include "kernels/avx2/tile_vec.h"

namespace pagoda::kernels::avx_vnni {
namespace {

struct TileVec : avx2::TileVec {
    // Weights are the unsigned operand; signed ones are raised by 128.
    static constexpr int kBias = 128;
    static constexpr int kRows = 6;  // 6 x 2 sums of products; the other 6 x 2 sums wait in L1
    static constexpr int kHalfRows = 3;
    static constexpr int kVecs = 2;

    // Exact in 32 bits, where avx2 is exact in pairs of 16: the sums are the same integers.
    template <Domain kDomain, bool kStarts>
    static I begin(const std::byte* start) {
        if constexpr (kStarts) return broadcast4(start);
        return _mm256_setzero_si256();
    }
    template <Domain kDomain>
    static I dot(I sum, I weights, I x) {
        return _mm256_dpbusd_avx_epi32(sum, weights, x);
    }
    template <Domain kDomain, bool kStarts>
    static F finish(I sum, const std::byte* /*start*/) {
        return _mm256_cvtepi32_ps(sum);
    }
};

}  // namespace
}  // namespace pagoda::kernels::avx_vnni
