// The densest loops of AVX2: 12 independent sums in registers.

#include <immintrin.h>

#include "kernels/avx2/variant.h"

namespace pagoda::kernels::avx2 {
namespace {

constexpr int kSums = 12;

}  // namespace

// Without VNNI: eight 4-bit products fit into 16 bits before they are widened, so that the multiply
// and the addition alone count.
double peak_int8(std::int64_t rounds) noexcept {
    __m256i sums[kSums];
    for (__m256i& sum : sums) sum = _mm256_setzero_si256();
    __m256i a = _mm256_set1_epi8(3);
    __m256i b = _mm256_set1_epi8(5);
    asm volatile("" : "+x"(a), "+x"(b));
    for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
        for (__m256i& sum : sums) {
            __m256i product = _mm256_maddubs_epi16(a, b);
            asm volatile("" : "+x"(product));
            sum = _mm256_add_epi16(sum, product);
            asm volatile("" : "+x"(sum));
        }
    }
    return static_cast<double>(rounds) * kSums * 32 * 2;
}

double peak_f32(std::int64_t rounds) noexcept {
    __m256 sums[kSums];
    for (__m256& sum : sums) sum = _mm256_setzero_ps();
    __m256 a = _mm256_set1_ps(0.5F);
    __m256 b = _mm256_set1_ps(1.0F);
    asm volatile("" : "+x"(a), "+x"(b));
    for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
        for (__m256& sum : sums) {
            sum = _mm256_fmadd_ps(sum, a, b);
            asm volatile("" : "+x"(sum));
        }
    }
    return static_cast<double>(rounds) * kSums * 8 * 2;
}

std::uint64_t read_memory(const std::byte* data, std::size_t bytes) noexcept {
    __m256i sums[8];
    for (__m256i& sum : sums) sum = _mm256_setzero_si256();
    for (std::size_t at = 0; at + 256 <= bytes; at += 256) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i)
            sums[i] = _mm256_xor_si256(
                sums[i], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data + at + i * 32)));
    }
    for (int i = 1; i < 8; ++i) sums[0] = _mm256_xor_si256(sums[0], sums[i]);
    return static_cast<std::uint64_t>(_mm256_extract_epi64(sums[0], 0)) ^
           static_cast<std::uint64_t>(_mm256_extract_epi64(sums[0], 1)) ^
           static_cast<std::uint64_t>(_mm256_extract_epi64(sums[0], 2)) ^
           static_cast<std::uint64_t>(_mm256_extract_epi64(sums[0], 3));
}

}  // namespace pagoda::kernels::avx2
