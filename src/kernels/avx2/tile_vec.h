#pragma once
// 256-bit vectors for the algorithms of generic/ (what each member means: tile_policy_inl.h).

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#include "kernels/generic/tile_policy_inl.h"

namespace pagoda::kernels::avx2 {
namespace {

struct TileVec {
    using F = __m256;
    using I = __m256i;
    static constexpr int kLanes = 8;
    static constexpr int kBytes = 32;
    // VPMADDUBSW adds two products in 16 bits, which 255 * 127 * 2 would exceed: signed weights
    // give their sign to the activations.
    static constexpr int kBias = 0;
    static constexpr int kRows = 4;  // 4 sums of products and 4 sums: 8 of 16 registers
    static constexpr int kHalfRows = 3;
    static constexpr int kVecs = 1;
    static constexpr int kRowVecs = 4;
    static constexpr int kSlotValues = 1;
    static constexpr int kFloatRows = 6;  // 6 x 2 sums of 16 registers
    static constexpr int kFloatVecs = 2;
    static constexpr int kFloatRegisters = 16;

    static F zero() { return _mm256_setzero_ps(); }
    static F set1(float value) { return _mm256_set1_ps(value); }
    static F broadcast(const std::byte* value) {
        return _mm256_broadcast_ss(reinterpret_cast<const float*>(value));
    }
    static F load(const float* in) { return _mm256_loadu_ps(in); }
    static void store(float* out, F value) { _mm256_storeu_ps(out, value); }
    static F add(F a, F b) { return _mm256_add_ps(a, b); }
    static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
    static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }

    // kLanes numbers widened to float.
    static F load_float(const std::byte* in) {
        return _mm256_loadu_ps(reinterpret_cast<const float*>(in));
    }
    static F load_half(const std::byte* in) { return _mm256_cvtph_ps(load_words(in)); }
    static F load_bfloat(const std::byte* in) {
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_words(in)), 16));
    }
    static F load_int8(const std::byte* in) {
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(load_lanes(in)));
    }
    static F load_uint8(const std::byte* in) {
        return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(load_lanes(in)));
    }
    static F load_low_nibbles(const std::byte* in) {
        const __m128i low = _mm_and_si128(load_lanes(in), _mm_set1_epi8(15));
        return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(low));
    }
    static F load_high_nibbles(const std::byte* in) {
        const __m128i high = _mm_and_si128(_mm_srli_epi16(load_lanes(in), 4), _mm_set1_epi8(15));
        return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(high));
    }

    // Bytes.
    static I load_bytes(const std::byte* in) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
    }
    static void store_bytes(std::byte* out, I value) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), value);
    }
    static I broadcast4(const std::byte* in) {
        return _mm256_set1_epi32(*reinterpret_cast<const std::int32_t*>(in));
    }
    static I set1_byte(int value) { return _mm256_set1_epi8(static_cast<char>(value)); }
    static I bit_and(I a, I b) { return _mm256_and_si256(a, b); }
    static I bit_or(I a, I b) { return _mm256_or_si256(a, b); }
    static I add_bytes(I a, I b) { return _mm256_add_epi8(a, b); }
    template <int kBits>  // > 0: towards the low bits
    static I shift(I a) {
        if constexpr (kBits > 0) return _mm256_srli_epi16(a, kBits);
        if constexpr (kBits < 0) return _mm256_slli_epi16(a, -kBits);
        return a;
    }
    static I look_up(const std::uint8_t* table, I index) {
        const __m128i values = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
        return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), index);
    }
    // Signed byte kByte of every 32-bit lane.
    template <int kByte>
    static F byte_to_float(I a) {
        return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(a, 24 - 8 * kByte), 24));
    }

    // 4-bit codes stay within 16 bits over the eight steps of a group (8 * 2 * 15 * 127 < 2^15);
    // the others are widened at once.
    template <Domain kDomain, bool kStarts>
    static I begin(const std::byte* /*start*/) {
        return _mm256_setzero_si256();
    }
    template <Domain kDomain>
    static I dot(I sum, I weights, I x) {
        if constexpr (kDomain == Domain::kUnsigned4)
            return _mm256_add_epi16(sum, _mm256_maddubs_epi16(weights, x));
        if constexpr (kDomain == Domain::kUnsigned5)
            return _mm256_add_epi32(sum, pairs(_mm256_maddubs_epi16(weights, x)));
        return _mm256_add_epi32(sum, pairs(_mm256_maddubs_epi16(_mm256_abs_epi8(weights),
                                                                _mm256_sign_epi8(x, weights))));
    }
    template <Domain kDomain, bool kStarts>
    static F finish(I sum, const std::byte* start) {
        if constexpr (kDomain == Domain::kUnsigned4) sum = pairs(sum);
        if constexpr (kStarts) sum = _mm256_add_epi32(sum, broadcast4(start));
        return _mm256_cvtepi32_ps(sum);
    }

  private:
    static I pairs(I words) { return _mm256_madd_epi16(words, _mm256_set1_epi16(1)); }
    static __m128i load_words(const std::byte* in) {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
    }
    static __m128i load_lanes(const std::byte* in) {
        return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(in));
    }
};

}  // namespace
}  // namespace pagoda::kernels::avx2
