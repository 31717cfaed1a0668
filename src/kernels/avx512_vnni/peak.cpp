// The densest loops of AVX-512: 12 independent sums hide the latency of any of these instructions
// on every CPU that has them. In assembly, so that no compiler folds or spills them.

#include <immintrin.h>

#include "kernels/avx512_vnni/variant.h"

namespace pagoda::kernels::avx512_vnni {
namespace {

constexpr int kSums = 12;

}  // namespace

double peak_int8(std::int64_t rounds) noexcept {
    const __m512i a = _mm512_set1_epi8(3);
    const __m512i b = _mm512_set1_epi8(5);
    for (std::int64_t round = 0; round < rounds; ++round) {
        asm volatile(
            "vpdpbusd %0, %1, %%zmm16\n\t"
            "vpdpbusd %0, %1, %%zmm17\n\t"
            "vpdpbusd %0, %1, %%zmm18\n\t"
            "vpdpbusd %0, %1, %%zmm19\n\t"
            "vpdpbusd %0, %1, %%zmm20\n\t"
            "vpdpbusd %0, %1, %%zmm21\n\t"
            "vpdpbusd %0, %1, %%zmm22\n\t"
            "vpdpbusd %0, %1, %%zmm23\n\t"
            "vpdpbusd %0, %1, %%zmm24\n\t"
            "vpdpbusd %0, %1, %%zmm25\n\t"
            "vpdpbusd %0, %1, %%zmm26\n\t"
            "vpdpbusd %0, %1, %%zmm27\n\t"
            :
            : "v"(a), "v"(b)
            : "zmm16", "zmm17", "zmm18", "zmm19", "zmm20", "zmm21", "zmm22", "zmm23", "zmm24",
              "zmm25", "zmm26", "zmm27");
    }
    return static_cast<double>(rounds) * kSums * 64 * 2;
}

// sum = sum * 0.5 + 1 stays an ordinary number.
double peak_f32(std::int64_t rounds) noexcept {
    const __m512 a = _mm512_set1_ps(0.5F);
    const __m512 b = _mm512_set1_ps(1.0F);
    for (std::int64_t round = 0; round < rounds; ++round) {
        asm volatile(
            "vfmadd132ps %0, %1, %%zmm16\n\t"
            "vfmadd132ps %0, %1, %%zmm17\n\t"
            "vfmadd132ps %0, %1, %%zmm18\n\t"
            "vfmadd132ps %0, %1, %%zmm19\n\t"
            "vfmadd132ps %0, %1, %%zmm20\n\t"
            "vfmadd132ps %0, %1, %%zmm21\n\t"
            "vfmadd132ps %0, %1, %%zmm22\n\t"
            "vfmadd132ps %0, %1, %%zmm23\n\t"
            "vfmadd132ps %0, %1, %%zmm24\n\t"
            "vfmadd132ps %0, %1, %%zmm25\n\t"
            "vfmadd132ps %0, %1, %%zmm26\n\t"
            "vfmadd132ps %0, %1, %%zmm27\n\t"
            :
            : "v"(a), "v"(b)
            : "zmm16", "zmm17", "zmm18", "zmm19", "zmm20", "zmm21", "zmm22", "zmm23", "zmm24",
              "zmm25", "zmm26", "zmm27");
    }
    return static_cast<double>(rounds) * kSums * 16 * 2;
}

// The one function of this variant that needs more than the variant requires; roof.cpp asks first.
double peak_bf16(std::int64_t rounds) noexcept {
    const __m512i a = _mm512_set1_epi16(0x3f80);
    const __m512i b = _mm512_set1_epi16(0);
    for (std::int64_t round = 0; round < rounds; ++round) {
        asm volatile(
            "vdpbf16ps %0, %1, %%zmm16\n\t"
            "vdpbf16ps %0, %1, %%zmm17\n\t"
            "vdpbf16ps %0, %1, %%zmm18\n\t"
            "vdpbf16ps %0, %1, %%zmm19\n\t"
            "vdpbf16ps %0, %1, %%zmm20\n\t"
            "vdpbf16ps %0, %1, %%zmm21\n\t"
            "vdpbf16ps %0, %1, %%zmm22\n\t"
            "vdpbf16ps %0, %1, %%zmm23\n\t"
            "vdpbf16ps %0, %1, %%zmm24\n\t"
            "vdpbf16ps %0, %1, %%zmm25\n\t"
            "vdpbf16ps %0, %1, %%zmm26\n\t"
            "vdpbf16ps %0, %1, %%zmm27\n\t"
            :
            : "v"(a), "v"(b)
            : "zmm16", "zmm17", "zmm18", "zmm19", "zmm20", "zmm21", "zmm22", "zmm23", "zmm24",
              "zmm25", "zmm26", "zmm27");
    }
    return static_cast<double>(rounds) * kSums * 32 * 2;
}

std::uint64_t read_memory(const std::byte* data, std::size_t bytes) noexcept {
    __m512i sums[8];
    for (__m512i& sum : sums) sum = _mm512_setzero_si512();
    for (std::size_t at = 0; at + 512 <= bytes; at += 512) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i)
            sums[i] = _mm512_xor_si512(sums[i], _mm512_loadu_si512(data + at + i * 64));
    }
    for (int i = 1; i < 8; ++i) sums[0] = _mm512_xor_si512(sums[0], sums[i]);
    return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(sums[0]));
}

}  // namespace pagoda::kernels::avx512_vnni
