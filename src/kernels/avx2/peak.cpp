// The densest loops of AVX2. In assembly, so that no compiler folds or spills them.

#include <immintrin.h>

#include "kernels/avx2/variant.h"

namespace pagoda::kernels::avx2 {

// Without VNNI: eight 4-bit products fit into 16 bits before they are widened, so that the multiply
// and the addition alone count.
double peak_int8(std::int64_t rounds) noexcept {
    const __m256i a = _mm256_set1_epi8(3);
    const __m256i b = _mm256_set1_epi8(5);
    for (std::int64_t round = 0; round < rounds; ++round) {
        asm volatile(
            "vpmaddubsw %0, %1, %%ymm4\n\t"
            "vpmaddubsw %0, %1, %%ymm5\n\t"
            "vpmaddubsw %0, %1, %%ymm6\n\t"
            "vpmaddubsw %0, %1, %%ymm7\n\t"
            "vpmaddubsw %0, %1, %%ymm8\n\t"
            "vpmaddubsw %0, %1, %%ymm9\n\t"
            "vpaddw %%ymm4, %%ymm10, %%ymm10\n\t"
            "vpaddw %%ymm5, %%ymm11, %%ymm11\n\t"
            "vpaddw %%ymm6, %%ymm12, %%ymm12\n\t"
            "vpaddw %%ymm7, %%ymm13, %%ymm13\n\t"
            "vpaddw %%ymm8, %%ymm14, %%ymm14\n\t"
            "vpaddw %%ymm9, %%ymm15, %%ymm15\n\t"
            :
            : "x"(a), "x"(b)
            : "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", "ymm10", "ymm11", "ymm12", "ymm13",
              "ymm14", "ymm15");
    }
    return static_cast<double>(rounds) * 6 * 32 * 2;
}

// sum = sum * 0.5 + 1 stays an ordinary number; 12 sums hide the latency.
double peak_f32(std::int64_t rounds) noexcept {
    const __m256 a = _mm256_set1_ps(0.5F);
    const __m256 b = _mm256_set1_ps(1.0F);
    for (std::int64_t round = 0; round < rounds; ++round) {
        asm volatile(
            "vfmadd132ps %0, %1, %%ymm4\n\t"
            "vfmadd132ps %0, %1, %%ymm5\n\t"
            "vfmadd132ps %0, %1, %%ymm6\n\t"
            "vfmadd132ps %0, %1, %%ymm7\n\t"
            "vfmadd132ps %0, %1, %%ymm8\n\t"
            "vfmadd132ps %0, %1, %%ymm9\n\t"
            "vfmadd132ps %0, %1, %%ymm10\n\t"
            "vfmadd132ps %0, %1, %%ymm11\n\t"
            "vfmadd132ps %0, %1, %%ymm12\n\t"
            "vfmadd132ps %0, %1, %%ymm13\n\t"
            "vfmadd132ps %0, %1, %%ymm14\n\t"
            "vfmadd132ps %0, %1, %%ymm15\n\t"
            :
            : "x"(a), "x"(b)
            : "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", "ymm10", "ymm11", "ymm12", "ymm13",
              "ymm14", "ymm15");
    }
    return static_cast<double>(rounds) * 12 * 8 * 2;
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
