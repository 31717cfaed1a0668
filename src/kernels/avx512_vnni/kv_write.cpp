// Writes K and V into their slots: the bytes of ref/kv_write.cpp, by scattered and masked stores
// that touch no other slot.

#include <immintrin.h>

#include "kernels/avx512_vnni/variant.h"
#include "kernels/generic/kv_write_inl.h"

namespace pagoda::kernels::avx512_vnni {
namespace {

constexpr int kLanes = 16;

// Rounded to nearest even, in the low half of each lane; NaN stays NaN.
__m512i to_bf16(__m512 x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_srli_epi32(
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    const __m512i quieted = _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
    return _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), quieted);
}

// Lane i is kKeysPerRun * i places of four bytes behind the first.
__m512i run_steps() {
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    return _mm512_slli_epi32(lanes, 4);
}

struct Stores {
    static void write_k_f32(const KvSlot& slot) {
        float* to =
            reinterpret_cast<float*>(slot.part) + k_offset(KvDType::kF32, slot.dims, slot.slot, 0);
        for (std::int32_t d = 0; d < slot.dims; d += kLanes) {
            _mm512_i32scatter_ps(to + d * kKeysPerRun, run_steps(),
                                 _mm512_loadu_ps(slot.values + d), 4);
        }
    }

    static void write_v_f32(const KvSlot& slot) {
        float* to =
            reinterpret_cast<float*>(slot.part) + v_offset(KvDType::kF32, slot.dims, slot.slot, 0);
        for (std::int32_t d = 0; d < slot.dims; d += kLanes) {
            _mm512_storeu_ps(to + d, _mm512_loadu_ps(slot.values + d));
        }
    }

    // 16 dims are 8 pairs, each of which is one place of four bytes.
    static void write_k_bf16(const KvSlot& slot) {
        auto* to = reinterpret_cast<std::uint16_t*>(slot.part) +
                   k_offset(KvDType::kBF16, slot.dims, slot.slot, 0);
        for (std::int32_t d = 0; d < slot.dims; d += kLanes) {
            const __m256i pairs = _mm512_cvtepi32_epi16(to_bf16(_mm512_loadu_ps(slot.values + d)));
            _mm256_i32scatter_epi32(to + d * kKeysPerRun, _mm512_castsi512_si256(run_steps()),
                                    pairs, 4);
        }
    }

    // The lanes of a vector are pairs of tokens; this token is their lower or upper half.
    static void write_v_bf16(const KvSlot& slot) {
        auto* to = reinterpret_cast<std::uint16_t*>(slot.part) +
                   v_offset(KvDType::kBF16, slot.dims, slot.slot - slot.slot % 2, 0);
        const bool upper = slot.slot % 2 != 0;
        const __mmask32 halves = upper ? 0xaaaaaaaaU : 0x55555555U;
        for (std::int32_t d = 0; d < slot.dims; d += kLanes) {
            const __m512i values = to_bf16(_mm512_loadu_ps(slot.values + d));
            _mm512_mask_storeu_epi16(to + 2 * d, halves,
                                     upper ? _mm512_slli_epi32(values, 16) : values);
        }
    }

    // Of the largest magnitude: as integers they sort like floats, NaN above all.
    static std::uint32_t largest_bits(const float* values, std::int32_t dims) {
        const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
        __m512i most = _mm512_setzero_si512();
        for (std::int32_t d = 0; d < dims; d += kLanes) {
            const __m512i bits = _mm512_and_si512(_mm512_loadu_si512(values + d), magnitude);
            most = _mm512_max_epi32(most, bits);
        }
        return static_cast<std::uint32_t>(_mm512_reduce_max_epi32(most));
    }

    static void round_int8(const KvSlot& slot, float factor, std::int8_t* codes) {
        const __m512 factors = _mm512_set1_ps(factor);
        for (std::int32_t d = 0; d < slot.dims; d += kLanes) {
            const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(slot.values + d), factors);
            _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + d),
                             _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(scaled)));
        }
    }
};

}  // namespace

void kv_write(const KvWriteArgs& args) noexcept {
    write_slots<Stores>(args);
}

}  // namespace pagoda::kernels::avx512_vnni
