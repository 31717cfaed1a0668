#pragma once
// 512-bit vectors for the algorithms of generic/ (what each member means: tile_policy_inl.h).

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#include "kernels/generic/tile_policy_inl.h"

namespace pagoda::kernels::avx512_vnni {
namespace {

struct TileVec {
    using F = __m512;
    using I = __m512i;
    static constexpr int kLanes = 16;
    static constexpr int kBytes = 64;
    // Weights are the unsigned operand of VPDPBUSD; signed ones are raised by 128.
    static constexpr int kBias = 128;
    static constexpr int kRows = 6;  // 6 x 2 sums of products and 6 x 2 sums: 24 of 32 registers
    static constexpr int kHalfRows = 4;  // formats with a scale for 16 values need a third set
    static constexpr int kVecs = 2;
    static constexpr int kRowVecs = 2;
    static constexpr int kSlotValues = 1;
    static constexpr int kFloatRows = 12;  // 12 x 2 sums of 32 registers
    static constexpr int kFloatVecs = 2;
    static constexpr int kFloatRegisters = 32;

    static F zero() { return _mm512_setzero_ps(); }
    static F set1(float value) { return _mm512_set1_ps(value); }
    static F broadcast(const std::byte* value) {
        return _mm512_set1_ps(*reinterpret_cast<const float*>(value));
    }
    static F load(const float* in) { return _mm512_loadu_ps(in); }
    static void store(float* out, F value) { _mm512_storeu_ps(out, value); }
    static F add(F a, F b) { return _mm512_add_ps(a, b); }
    static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
    static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }

    // kLanes numbers widened to float.
    static F load_float(const std::byte* in) { return _mm512_loadu_ps(in); }
    static F load_half(const std::byte* in) { return _mm512_cvtph_ps(load_words(in)); }
    static F load_bfloat(const std::byte* in) {
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_words(in)), 16));
    }
    static F load_int8(const std::byte* in) {
        return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_lanes(in)));
    }
    static F load_uint8(const std::byte* in) {
        return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(load_lanes(in)));
    }
    static F load_low_nibbles(const std::byte* in) {
        const __m128i low = _mm_and_si128(load_lanes(in), _mm_set1_epi8(15));
        return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(low));
    }
    static F load_high_nibbles(const std::byte* in) {
        const __m128i high = _mm_and_si128(_mm_srli_epi16(load_lanes(in), 4), _mm_set1_epi8(15));
        return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(high));
    }

    // Bytes.
    static I load_bytes(const std::byte* in) { return _mm512_loadu_si512(in); }
    static void store_bytes(std::byte* out, I value) { _mm512_storeu_si512(out, value); }
    static I broadcast4(const std::byte* in) {
        return _mm512_set1_epi32(*reinterpret_cast<const std::int32_t*>(in));
    }
    static I set1_byte(int value) { return _mm512_set1_epi8(static_cast<char>(value)); }
    static I bit_and(I a, I b) { return _mm512_and_si512(a, b); }
    static I bit_or(I a, I b) { return _mm512_or_si512(a, b); }
    static I add_bytes(I a, I b) { return _mm512_add_epi8(a, b); }
    template <int kBits>  // > 0: towards the low bits
    static I shift(I a) {
        if constexpr (kBits > 0) return _mm512_srli_epi16(a, kBits);
        if constexpr (kBits < 0) return _mm512_slli_epi16(a, -kBits);
        return a;
    }
    static I look_up(const std::uint8_t* table, I index) {
        const __m128i values = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
        return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(values), index);
    }
    // Signed byte kByte of every 32-bit lane.
    template <int kByte>
    static F byte_to_float(I a) {
        return _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(a, 24 - 8 * kByte), 24));
    }

    // VPDPBUSD is exact in 32 bits.
    template <Domain kDomain, bool kStarts>
    static I begin(const std::byte* start) {
        if constexpr (kStarts) return broadcast4(start);
        return _mm512_setzero_si512();
    }
    template <Domain kDomain>
    static I dot(I sum, I weights, I x) {
        return _mm512_dpbusd_epi32(sum, weights, x);
    }
    template <Domain kDomain, bool kStarts>
    static F finish(I sum, const std::byte* /*start*/) {
        return _mm512_cvtepi32_ps(sum);
    }

  private:
    static __m256i load_words(const std::byte* in) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
    }
    static __m128i load_lanes(const std::byte* in) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
    }
};

}  // namespace
}  // namespace pagoda::kernels::avx512_vnni
