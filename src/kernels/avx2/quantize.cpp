// int8 activations by the rule of QuantizeArgs, in the rows of generic/tile_layout_inl.h.

#include <immintrin.h>

#include "kernels/avx2/variant.h"
#include "kernels/generic/tile_layout_inl.h"
#include "kernels/tile32/pack.h"

namespace pagoda::kernels::avx2 {
namespace {

constexpr std::int32_t kInfinityBits = 0x7f800000;
constexpr std::int32_t kNanBits = 0x7fc00000;

struct Group {
    __m256 part[4];
};

Group load_group(const float* in) {
    return {{_mm256_loadu_ps(in), _mm256_loadu_ps(in + 8), _mm256_loadu_ps(in + 16),
             _mm256_loadu_ps(in + 24)}};
}

// The bits of the largest magnitude: as integers, magnitudes sort like floats, NaN above all.
std::int32_t largest_bits(const Group& group) {
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    const auto bits = [&](int i) {
        return _mm256_and_si256(_mm256_castps_si256(group.part[i]), mask);
    };
    const __m256i all =
        _mm256_max_epi32(_mm256_max_epi32(bits(0), bits(1)), _mm256_max_epi32(bits(2), bits(3)));
    __m128i four = _mm_max_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
    return _mm_cvtsi128_si32(four);
}

float from_bits(std::int32_t bits) {
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(bits)));
}

__m256i codes_of(const Group& group, float inverse) {
    const __m256 factor = _mm256_set1_ps(inverse);
    const auto code = [&](int i) {
        return _mm256_cvtps_epi32(_mm256_mul_ps(group.part[i], factor));
    };
    const __m256i words_01 = _mm256_packs_epi32(code(0), code(1));
    const __m256i words_23 = _mm256_packs_epi32(code(2), code(3));
    // Packing works within 128-bit halves; the permutation restores the order of fours.
    return _mm256_permutevar8x32_epi32(_mm256_packs_epi16(words_01, words_23),
                                       _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

struct HalfSums {
    std::int32_t low, high;
};
HalfSums sums_of(__m256i codes) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), codes);
    __m256i sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0x4e));
    sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0xb1));
    return {_mm_cvtsi128_si32(_mm256_castsi256_si128(sums)),
            _mm_cvtsi128_si32(_mm256_extracti128_si256(sums, 1))};
}

template <class T>
void put(std::byte* group, RowField field, T value) {
    static_assert(sizeof value == 4);
    *reinterpret_cast<T*>(group + field * 4) = value;
}

void put_fields(std::byte* group, float scale, HalfSums sums) {
    const std::int32_t sum = sums.low + sums.high;
    put(group, kFieldScale, scale);
    put(group, kFieldScaledSum, scale * static_cast<float>(sum));
    put(group, kFieldStart8, -8 * sum);
    put(group, kFieldStart128, -128 * sum);
    put(group, kFieldStart128Low, -128 * sums.low);
    put(group, kFieldStart128High, -128 * sums.high);
    put(group, kFieldLowSum, static_cast<float>(sums.low));
    put(group, kFieldHighSum, static_cast<float>(sums.high));
}

void quantize_row(const float* in, std::int64_t cols, std::byte* out) {
    for (const float* end = in + cols; in < end; in += kGroupValues, out += kRowGroupBytes) {
        auto* codes = reinterpret_cast<__m256i*>(out);
        const Group values = load_group(in);
        const std::int32_t bits = largest_bits(values);
        const float largest = from_bits(bits);
        if (bits >= kInfinityBits || largest < kTinyActivation) {
            _mm256_storeu_si256(codes, _mm256_setzero_si256());
            put_fields(out, bits >= kInfinityBits ? from_bits(kNanBits) : 0.0F, {0, 0});
            continue;
        }
        const __m256i code = codes_of(values, 127.0F / largest);
        _mm256_storeu_si256(codes, code);
        put_fields(out, largest / 127.0F, sums_of(code));
    }
}

}  // namespace

void quantize(const QuantizeArgs& args) noexcept {
    const std::size_t row_bytes = tile32::quantized_row_bytes(args.cols);
    std::byte* out = args.out + args.col_begin / kGroupValues * kRowGroupBytes;
    for (std::int64_t row = 0; row < args.rows; ++row)
        quantize_row(args.in + row * args.in_stride, args.col_end - args.col_begin,
                     out + static_cast<std::size_t>(row) * row_bytes);
}

}  // namespace pagoda::kernels::avx2
