// int8 activations by the rule of QuantizeArgs, in the rows of generic/tile_layout_inl.h. A group's
// eight fields are one vector: sums times constants, as integers or as floats.

#include <immintrin.h>

#include "kernels/avx512_vnni/variant.h"
#include "kernels/generic/tile_layout_inl.h"
#include "kernels/tile32/pack.h"

namespace pagoda::kernels::avx512_vnni {
namespace {

constexpr std::int32_t kInfinityBits = 0x7f800000;
constexpr std::int32_t kTinyBits = 0x07800000;  // of kTinyActivation
static_assert(kTinyActivation == 0x1p-112F);

// The bits of the largest magnitude in all lanes: as integers, magnitudes sort like floats, NaN
// above all.
__m128i largest_bits(__m512 low, __m512 high) {
    const __m512i mask = _mm512_set1_epi32(0x7fffffff);
    const __m512i all = _mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(low), mask),
                                         _mm512_and_si512(_mm512_castps_si512(high), mask));
    const __m256i eight =
        _mm256_max_epi32(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
}

// Fields 0 and 1: scale, and scale times the sum; then the sum and those of the halves times what
// codes are too high; last the sums of the halves as floats.
__m256 fields_of(__m256i codes, __m128 scale) {
    __m256i halves = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), codes);
    halves = _mm256_add_epi32(halves, _mm256_shuffle_epi32(halves, 0x4e));
    halves = _mm256_add_epi32(halves, _mm256_shuffle_epi32(halves, 0xb1));  // low x 4, high x 4
    const __m256i whole = _mm256_add_epi32(halves, _mm256_permute2x128_si256(halves, halves, 1));
    const __m256i low_high =
        _mm256_permutevar8x32_epi32(halves, _mm256_setr_epi32(0, 0, 0, 0, 0, 4, 0, 4));
    const __m256i sums = _mm256_blend_epi32(whole, low_high, 0xf0);
    const __m256i starts =
        _mm256_mullo_epi32(sums, _mm256_setr_epi32(0, 0, -8, -128, -128, -128, 0, 0));
    const __m256 scales = _mm256_broadcastss_ps(scale);
    const __m256 factors = _mm256_blend_ps(_mm256_set1_ps(1.0F), scales, 0x02);
    const __m256 floats = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), factors);
    const __m256 fields = _mm256_blend_ps(_mm256_castsi256_ps(starts), floats, 0xc2);
    return _mm256_blend_ps(fields, scales, 0x01);
}

void quantize_group(const float* in, std::byte* out) {
    const __m512 low = _mm512_loadu_ps(in);
    const __m512 high = _mm512_loadu_ps(in + 16);
    const __m128i bits = largest_bits(low, high);
    const std::int32_t largest = _mm_cvtsi128_si32(bits);
    if (largest >= kInfinityBits || largest < kTinyBits) {
        const float scale = largest >= kInfinityBits ? __builtin_nanf("") : 0.0F;
        const __m512 zeros = _mm512_setzero_ps();
        _mm512_storeu_ps(out, zeros);
        auto* fields = reinterpret_cast<float*>(out) + kFieldScale;
        fields[0] = scale;
        fields[1] = scale * 0.0F;
        return;
    }
    // scale = largest / 127 and inverse = 127 / largest by one division
    const __m128 value = _mm_castsi128_ps(bits);
    const __m128 most = _mm_set1_ps(127.0F);
    const __m128 quotients = _mm_div_ps(_mm_unpacklo_ps(value, most), _mm_unpacklo_ps(most, value));
    const __m512 inverse = _mm512_broadcastss_ps(_mm_movehdup_ps(quotients));
    const __m128i low_codes = _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(low, inverse)));
    const __m128i high_codes =
        _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(high, inverse)));
    const __m256i codes = _mm256_set_m128i(high_codes, low_codes);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), codes);
    _mm256_storeu_ps(reinterpret_cast<float*>(out) + kFieldScale, fields_of(codes, quotients));
}

}  // namespace

void quantize(const QuantizeArgs& args) noexcept {
    const std::size_t row_bytes = tile32::quantized_row_bytes(args.cols);
    for (std::int64_t row = 0; row < args.rows; ++row) {
        const float* in = args.in + row * args.in_stride;
        std::byte* out = args.out + static_cast<std::size_t>(row) * row_bytes +
                         args.col_begin / kGroupValues * kRowGroupBytes;
        for (std::int64_t col = args.col_begin; col < args.col_end; col += kGroupValues) {
            quantize_group(in, out);
            in += kGroupValues;
            out += kRowGroupBytes;
        }
    }
}

}  // namespace pagoda::kernels::avx512_vnni
