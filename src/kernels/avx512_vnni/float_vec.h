#pragma once
// FloatVec: 16 floats in a 512-bit register, the policy over which the float kernels of generic/
// are written. What each member means stands here once; avx2/float_vec.h has the same ones for 8
// floats. Everything has internal linkage (kernel objects define entry points and their table
// alone).

#include <cstddef>
#include <cstdint>

#include <immintrin.h>

namespace pagoda::kernels::avx512_vnni {
namespace {  // NOLINT(google-build-namespaces): internal linkage is the point

struct FloatVec {
    using F = __m512;
    static constexpr int kLanes = 16;
    // Attention: query rows of the largest register tile, and accumulators of any tile, which
    // leave room for K or V and a broadcast.
    static constexpr int kTileRows = 12;
    static constexpr int kAccumulators = 24;

    [[gnu::always_inline]] static F zero() { return _mm512_setzero_ps(); }
    // Asks for a line to be brought into the second cache: of the buffers in front of the first one
    // there are too few to keep memory busy.
    [[gnu::always_inline]] static void fetch(const std::byte* from) {
        _mm_prefetch(reinterpret_cast<const char*>(from), _MM_HINT_T1);
    }
    [[gnu::always_inline]] static F set1(float x) { return _mm512_set1_ps(x); }
    [[gnu::always_inline]] static F load(const float* from) { return _mm512_loadu_ps(from); }
    [[gnu::always_inline]] static void store(float* to, F x) { _mm512_storeu_ps(to, x); }
    // The first n lanes, 0 <= n <= kLanes; the others are 0 (load) or untouched memory (store).
    [[gnu::always_inline]] static F load_n(const float* from, std::int64_t n) {
        return _mm512_maskz_loadu_ps(first_lanes(n), from);
    }
    [[gnu::always_inline]] static void store_n(float* to, std::int64_t n, F x) {
        _mm512_mask_storeu_ps(to, first_lanes(n), x);
    }
    // n values, n <= kLanes / 2, each in two neighbouring lanes.
    [[gnu::always_inline]] static F load_twice(const float* from, std::int64_t n) {
        const __m512i lanes = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
        return _mm512_permutexvar_ps(lanes, load_n(from, n));
    }

    // bfloat16 pairs: the values at even and at odd places, widened.
    [[gnu::always_inline]] static F load_even_bf16(const std::uint16_t* from) {
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(from), 16));
    }
    [[gnu::always_inline]] static F load_odd_bf16(const std::uint16_t* from) {
        const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000U));
        return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(from), upper));
    }
    // int8, four to a lane: the codes at place `part`, each divided by kInt8Unit. One shuffle moves
    // them to the tops of their lanes above zeros, where they are integers times 2^24.
    static constexpr float kInt8Unit = 0x1p-24F;
    [[gnu::always_inline]] static F load_int8(const std::byte* from, int part) {
        const __m512i first = _mm512_set4_epi32(12 << 24 | 0x808080, 8 << 24 | 0x808080,
                                                4 << 24 | 0x808080, 0x808080);
        const __m512i places = _mm512_add_epi32(first, _mm512_set1_epi32(part << 24));
        return _mm512_cvtepi32_ps(_mm512_shuffle_epi8(_mm512_loadu_si512(from), places));
    }

    [[gnu::always_inline]] static F add(F a, F b) { return _mm512_add_ps(a, b); }
    [[gnu::always_inline]] static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
    [[gnu::always_inline]] static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
    [[gnu::always_inline]] static F div(F a, F b) { return _mm512_div_ps(a, b); }
    [[gnu::always_inline]] static F sqrt(F a) { return _mm512_sqrt_ps(a); }
    // a b + c and c - a b, rounded once.
    [[gnu::always_inline]] static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
    [[gnu::always_inline]] static F fnma(F a, F b, F c) { return _mm512_fnmadd_ps(a, b, c); }
    // a b - c in even lanes, a b + c in odd ones.
    [[gnu::always_inline]] static F fma_alternating(F a, F b, F c) {
        return _mm512_fmaddsub_ps(a, b, c);
    }
    // b when either is NaN.
    [[gnu::always_inline]] static F max(F a, F b) { return _mm512_max_ps(a, b); }
    [[gnu::always_inline]] static F min(F a, F b) { return _mm512_min_ps(a, b); }
    [[gnu::always_inline]] static F abs(F a) { return _mm512_abs_ps(a); }
    // The magnitude of a with the sign of b.
    [[gnu::always_inline]] static F copy_sign(F a, F b) {
        const __m512i sign = _mm512_set1_epi32(static_cast<int>(0x80000000U));
        const __m512i bits = _mm512_castps_si512(a);
        return _mm512_castsi512_ps(
            _mm512_ternarylogic_epi32(sign, _mm512_castps_si512(b), bits, 0xca));
    }
    // a < b ? x : y, and y when either is NaN.
    [[gnu::always_inline]] static F select_less(F a, F b, F x, F y) {
        return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
    }
    // x in lanes [begin, end), other elsewhere; begin and end may lie outside of the register.
    [[gnu::always_inline]] static F keep(F x, std::int64_t begin, std::int64_t end, F other) {
        const auto mask = static_cast<__mmask16>(first_lanes(end) & ~first_lanes(begin));
        return _mm512_mask_blend_ps(mask, other, x);
    }
    // The nearest integer, ties to even.
    [[gnu::always_inline]] static F round(F a) {
        return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    // a 2^n for integral n in [-252, 254], correctly rounded into the subnormals.
    [[gnu::always_inline]] static F scale_by_power(F a, F n) { return _mm512_scalef_ps(a, n); }
    // a - floor(a)
    [[gnu::always_inline]] static F fraction(F a) {
        return _mm512_reduce_ps(a, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    }
    // a 2^floor(t) for a in [1, 2] and t <= 0; 0 where t < -126, whatever a is there.
    [[gnu::always_inline]] static F times_power_of_two(F a, F t) {
        const __mmask16 is_normal = _mm512_cmp_ps_mask(t, set1(-126.0F), _CMP_NLT_UQ);
        return _mm512_maskz_scalef_ps(is_normal, a, t);
    }
    // Neighbouring lanes exchanged.
    [[gnu::always_inline]] static F swap_pairs(F a) { return _mm512_permute_ps(a, 0xb1); }

    // All lanes, by a fixed tree: halves, quarters, pairs.
    [[gnu::always_inline]] static float reduce_add(F a) {
        const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
        const __m128 quarter =
            _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
        const __m128 pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
        return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
    }
    [[gnu::always_inline]] static float reduce_max(F a) {
        const __m256 half = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
        const __m128 quarter =
            _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
        const __m128 pair = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
        return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
    }
    [[gnu::always_inline]] static float first(F a) { return _mm512_cvtss_f32(a); }

  private:
    [[gnu::always_inline]] static __mmask16 first_lanes(std::int64_t n) {
        const std::int64_t clamped = n < 0 ? 0 : (n > kLanes ? kLanes : n);
        return static_cast<__mmask16>((1U << clamped) - 1U);
    }
};

}  // namespace
}  // namespace pagoda::kernels::avx512_vnni
