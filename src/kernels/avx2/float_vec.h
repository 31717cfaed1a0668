#pragma once
// FloatVec: 8 floats in a 256-bit register, the policy over which the float kernels of generic/
// are written. What each member means stands in avx512_vnni/float_vec.h.
// Everything has internal linkage (kernel objects define no symbol but their table).

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace pagoda::kernels::avx2 {
namespace {  // NOLINT(google-build-namespaces): internal linkage is the point

struct FloatVec {
    using F = __m256;
    static constexpr int kLanes = 8;
    static constexpr int kTileRows = 6;
    static constexpr int kAccumulators = 12;

    [[gnu::always_inline]] static F zero() { return _mm256_setzero_ps(); }
    [[gnu::always_inline]] static void fetch(const std::byte* from) {
        _mm_prefetch(reinterpret_cast<const char*>(from), _MM_HINT_T1);
    }
    [[gnu::always_inline]] static F set1(float x) { return _mm256_set1_ps(x); }
    [[gnu::always_inline]] static F load(const float* from) { return _mm256_loadu_ps(from); }
    [[gnu::always_inline]] static void store(float* to, F x) { _mm256_storeu_ps(to, x); }
    [[gnu::always_inline]] static F load_n(const float* from, std::int64_t n) {
        return n == kLanes ? load(from) : _mm256_maskload_ps(from, lanes_below(n));
    }
    [[gnu::always_inline]] static void store_n(float* to, std::int64_t n, F x) {
        if (n == kLanes) {
            store(to, x);
        } else {
            _mm256_maskstore_ps(to, lanes_below(n), x);
        }
    }
    [[gnu::always_inline]] static F load_twice(const float* from, std::int64_t n) {
        const __m256i lanes = _mm256_set_epi32(3, 3, 2, 2, 1, 1, 0, 0);
        return _mm256_permutevar8x32_ps(load_n(from, n), lanes);
    }

    [[gnu::always_inline]] static F load_even_bf16(const std::uint16_t* from) {
        return _mm256_castsi256_ps(_mm256_slli_epi32(load_bits(from), 16));
    }
    [[gnu::always_inline]] static F load_odd_bf16(const std::uint16_t* from) {
        const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000U));
        return _mm256_castsi256_ps(_mm256_and_si256(load_bits(from), upper));
    }
    static constexpr float kInt8Unit = 0x1p-24F;
    [[gnu::always_inline]] static F load_int8(const std::byte* from, int part) {
        const __m128i first =
            _mm_set_epi32(12 << 24 | 0x808080, 8 << 24 | 0x808080, 4 << 24 | 0x808080, 0x808080);
        const __m256i places =
            _mm256_add_epi32(_mm256_set_m128i(first, first), _mm256_set1_epi32(part << 24));
        const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
        return _mm256_cvtepi32_ps(_mm256_shuffle_epi8(codes, places));
    }

    [[gnu::always_inline]] static F add(F a, F b) { return _mm256_add_ps(a, b); }
    [[gnu::always_inline]] static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
    [[gnu::always_inline]] static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
    [[gnu::always_inline]] static F div(F a, F b) { return _mm256_div_ps(a, b); }
    [[gnu::always_inline]] static F sqrt(F a) { return _mm256_sqrt_ps(a); }
    [[gnu::always_inline]] static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
    [[gnu::always_inline]] static F fnma(F a, F b, F c) { return _mm256_fnmadd_ps(a, b, c); }
    [[gnu::always_inline]] static F fma_alternating(F a, F b, F c) {
        return _mm256_fmaddsub_ps(a, b, c);
    }
    [[gnu::always_inline]] static F max(F a, F b) { return _mm256_max_ps(a, b); }
    [[gnu::always_inline]] static F min(F a, F b) { return _mm256_min_ps(a, b); }
    [[gnu::always_inline]] static F abs(F a) { return _mm256_andnot_ps(set1(-0.0F), a); }
    [[gnu::always_inline]] static F copy_sign(F a, F b) {
        const F sign = set1(-0.0F);
        return _mm256_or_ps(_mm256_andnot_ps(sign, a), _mm256_and_ps(sign, b));
    }
    [[gnu::always_inline]] static F select_less(F a, F b, F x, F y) {
        return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
    }
    [[gnu::always_inline]] static F keep(F x, std::int64_t begin, std::int64_t end, F other) {
        const __m256i mask = _mm256_andnot_si256(lanes_below(begin), lanes_below(end));
        return _mm256_blendv_ps(other, x, _mm256_castsi256_ps(mask));
    }
    [[gnu::always_inline]] static F round(F a) {
        return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    // In two factors, each a normal number; the first product is exact.
    [[gnu::always_inline]] static F scale_by_power(F a, F n) {
        const __m256i exponent = _mm256_cvtps_epi32(n);
        const __m256i half = _mm256_srai_epi32(exponent, 1);
        return mul(mul(a, power_of_two(half)), power_of_two(_mm256_sub_epi32(exponent, half)));
    }
    [[gnu::always_inline]] static F fraction(F a) { return sub(a, _mm256_floor_ps(a)); }
    [[gnu::always_inline]] static F times_power_of_two(F a, F t) {
        const F product = mul(a, power_of_two(_mm256_cvtps_epi32(_mm256_floor_ps(t))));
        const F is_small = _mm256_cmp_ps(t, set1(-126.0F), _CMP_LT_OQ);
        return _mm256_andnot_ps(is_small, product);
    }
    [[gnu::always_inline]] static F swap_pairs(F a) { return _mm256_permute_ps(a, 0xb1); }

    [[gnu::always_inline]] static float reduce_add(F a) {
        const __m128 half = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
        const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
        return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
    }
    [[gnu::always_inline]] static float reduce_max(F a) {
        const __m128 half = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
        const __m128 pair = _mm_max_ps(half, _mm_movehl_ps(half, half));
        return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
    }
    [[gnu::always_inline]] static float first(F a) { return _mm256_cvtss_f32(a); }

  private:
    // All ones in lanes [0, n); n may lie outside of the register.
    [[gnu::always_inline]] static __m256i lanes_below(std::int64_t n) {
        const std::int64_t clamped = n < 0 ? 0 : (n > kLanes ? kLanes : n);
        return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(clamped)),
                                  _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0));
    }
    [[gnu::always_inline]] static __m256i load_bits(const std::uint16_t* from) {
        return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    }
    // 2^n for n in [-126, 127]
    [[gnu::always_inline]] static F power_of_two(__m256i n) {
        return _mm256_castsi256_ps(
            _mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
    }
};

}  // namespace
}  // namespace pagoda::kernels::avx2
