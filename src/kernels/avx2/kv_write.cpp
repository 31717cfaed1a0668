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
};

}  // namespace

void kv_write(const KvWriteArgs& args) noexcept {
    write_slots<Stores>(args);
}

}  // namespace pagoda::kernels::avx2
