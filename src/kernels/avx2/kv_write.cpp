// Writes K and V into their slots: the bytes of ref/kv_write.cpp. Rounding is vectorised; the
// stores are the scalar ones of the slots' own bytes, as AVX2 has no scatter.

#include <immintrin.h>

#include "kernels/avx2/variant.h"
#include "kernels/generic/kv_write_inl.h"

namespace pagoda::kernels::avx2 {
namespace {

constexpr int kLanes = 8;

// Rounded to nearest even, in the low half of each lane; NaN stays NaN.
__m256i to_bf16(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_srli_epi32(
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    const __m256i quieted = _mm256_or_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(rounded, quieted, is_nan);
}

struct Stores {
    static void write_k_f32(const KvSlot& slot) {
        float* to =
            reinterpret_cast<float*>(slot.part) + k_offset(KvDType::kF32, slot.dims, slot.slot, 0);
        for (std::int32_t d = 0; d < slot.dims; ++d) to[d * kKeysPerRun] = slot.values[d];
    }

    static void write_v_f32(const KvSlot& slot) {
        float* to =
            reinterpret_cast<float*>(slot.part) + v_offset(KvDType::kF32, slot.dims, slot.slot, 0);
        for (std::int32_t d = 0; d < slot.dims; d += kLanes) {
            _mm256_storeu_ps(to + d, _mm256_loadu_ps(slot.values + d));
        }
    }

    static void write_k_bf16(const KvSlot& slot) {
        auto* to = reinterpret_cast<std::uint16_t*>(slot.part) +
                   k_offset(KvDType::kBF16, slot.dims, slot.slot, 0);
        for (std::int32_t d = 0; d < slot.dims; d += kLanes) {
            std::uint32_t values[kLanes];
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(values),
                                to_bf16(_mm256_loadu_ps(slot.values + d)));
            for (int i = 0; i < kLanes; i += 2) {
                std::uint16_t* pair = to + (d + i) * kKeysPerRun;
                pair[0] = static_cast<std::uint16_t>(values[i]);
                pair[1] = static_cast<std::uint16_t>(values[i + 1]);
            }
        }
    }

    static void write_v_bf16(const KvSlot& slot) {
        auto* to = reinterpret_cast<std::uint16_t*>(slot.part) +
                   v_offset(KvDType::kBF16, slot.dims, slot.slot, 0);
        for (std::int32_t d = 0; d < slot.dims; d += kLanes) {
            std::uint32_t values[kLanes];
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(values),
                                to_bf16(_mm256_loadu_ps(slot.values + d)));
            for (int i = 0; i < kLanes; ++i) {
                to[2 * (d + i)] = static_cast<std::uint16_t>(values[i]);
            }
        }
    }

    // Of the largest magnitude: as integers they sort like floats, NaN above all.
    static std::uint32_t largest_bits(const float* values, std::int32_t dims) {
        const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
        __m256i most = _mm256_setzero_si256();
        for (std::int32_t d = 0; d < dims; d += kLanes) {
            const __m256 bits = _mm256_and_ps(_mm256_loadu_ps(values + d), magnitude);
            most = _mm256_max_epi32(most, _mm256_castps_si256(bits));
        }
        __m128i four =
            _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
        four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
        four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1));
        return static_cast<std::uint32_t>(_mm_cvtsi128_si32(four));
    }

    static void round_int8(const KvSlot& slot, float factor, std::int8_t* codes) {
        const __m256 factors = _mm256_set1_ps(factor);
        for (std::int32_t d = 0; d < slot.dims; d += kLanes) {
            const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(slot.values + d), factors);
            const __m256i wide = _mm256_cvtps_epi32(scaled);
            const __m128i words =
                _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
            _mm_storel_epi64(reinterpret_cast<__m128i*>(codes + d), _mm_packs_epi16(words, words));
        }
    }
};

}  // namespace

void kv_write(const KvWriteArgs& args) noexcept {
    write_slots<Stores>(args);
}

}  // namespace pagoda::kernels::avx2
