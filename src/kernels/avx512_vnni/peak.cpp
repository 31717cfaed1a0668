// The densest loops of AVX-512: 16 independent sums in registers hide the latency of any of these
// instructions on every CPU that has them.

#include <immintrin.h>

#include "kernels/avx512_vnni/variant.h"

namespace pagoda::kernels::avx512_vnni {
namespace {

constexpr int kSums = 16;

}  // namespace

double peak_int8(std::int64_t rounds) noexcept {
    __m512i sums[kSums];
    for (__m512i& sum : sums) sum = _mm512_setzero_si512();
    __m512i a = _mm512_set1_epi8(3);
    __m512i b = _mm512_set1_epi8(5);
    asm volatile("" : "+v"(a), "+v"(b));
    for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
        for (__m512i& sum : sums) {
            sum = _mm512_dpbusd_epi32(sum, a, b);
            asm volatile("" : "+v"(sum));
        }
    }
    return static_cast<double>(rounds) * kSums * 64 * 2;
}

double peak_f32(std::int64_t rounds) noexcept {
    __m512 sums[kSums];
    for (__m512& sum : sums) sum = _mm512_setzero_ps();
    __m512 a = _mm512_set1_ps(0.5F);
    __m512 b = _mm512_set1_ps(1.0F);
    asm volatile("" : "+v"(a), "+v"(b));
    for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
        for (__m512& sum : sums) {
            sum = _mm512_fmadd_ps(sum, a, b);
            asm volatile("" : "+v"(sum));
        }
    }
    return static_cast<double>(rounds) * kSums * 16 * 2;
}

// The one function of this variant that needs more than the variant requires; roof.cpp asks first.
__attribute__((target("avx512bf16"))) double peak_bf16(std::int64_t rounds) noexcept {
    __m512 sums[kSums];
    for (__m512& sum : sums) sum = _mm512_setzero_ps();
    const __m512 ones = _mm512_set1_ps(1.0F);
    __m512bh a = _mm512_cvtne2ps_pbh(ones, ones);
    asm volatile("" : "+v"(a));
    for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
        for (__m512& sum : sums) {
            sum = _mm512_dpbf16_ps(sum, a, a);
            asm volatile("" : "+v"(sum));
        }
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
