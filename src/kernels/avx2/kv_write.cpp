// Writes K and V into their slots: the bytes of ref/kv_write.cpp. Rounding is vectorised; the
// stores are the scalar ones of the slots' own bytes, as AVX2 has no scatter.

#include <immintrin.h>

#include "kernels/avx2/variant.h"
#include "kernels/generic/kv_layout_inl.h"

namespace pagoda::kernels::avx2 {
namespace {

constexpr int kLanes = 8;

// One head of one token.
struct Slot {
    std::byte* part;
    const float* values;
    std::int32_t slot;
    std::int32_t dims;  // a multiple of 16
};

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

void write_k_f32(const Slot& slot) {
    float* to =
        reinterpret_cast<float*>(slot.part) + k_offset(KvDType::kF32, slot.dims, slot.slot, 0);
    for (std::int32_t d = 0; d < slot.dims; ++d) to[d * kKeysPerRun] = slot.values[d];
}

void write_v_f32(const Slot& slot) {
    float* to =
        reinterpret_cast<float*>(slot.part) + v_offset(KvDType::kF32, slot.dims, slot.slot, 0);
    for (std::int32_t d = 0; d < slot.dims; d += kLanes) {
        _mm256_storeu_ps(to + d, _mm256_loadu_ps(slot.values + d));
    }
}

void write_k_bf16(const Slot& slot) {
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

void write_v_bf16(const Slot& slot) {
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

}  // namespace

void kv_write(const KvWriteArgs& args) noexcept {
    const PagedKvView& kv = args.kv;
    const bool is_f32 = kv.dtype == KvDType::kF32;
    const std::size_t part_bytes = kv_part_values(kv.head_dim) * kv_value_bytes(kv.dtype);
    for (std::int64_t row = 0; row < args.rows; ++row) {
        std::byte* block = kv.data + static_cast<std::size_t>(args.blocks[row]) * kv.block_bytes;
        for (std::int32_t head = 0; head < kv.kv_heads; ++head) {
            const std::int64_t column = std::int64_t{head} * kv.head_dim;
            const Slot k{.part = block + static_cast<std::size_t>(head) * part_bytes,
                         .values = args.k + row * args.k_stride + column,
                         .slot = args.slots[row],
                         .dims = kv.head_dim};
            const Slot v{.part = k.part + static_cast<std::size_t>(kv.kv_heads) * part_bytes,
                         .values = args.v + row * args.v_stride + column,
                         .slot = args.slots[row],
                         .dims = kv.head_dim};
            is_f32 ? write_k_f32(k) : write_k_bf16(k);
            is_f32 ? write_v_f32(v) : write_v_bf16(v);
        }
    }
}

}  // namespace pagoda::kernels::avx2
