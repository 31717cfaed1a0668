// The densest loop of AVX-VNNI: 12 independent sums hide the latency. In assembly, so that no
// compiler folds or spills them.

#include <immintrin.h>

#include "kernels/avx_vnni/variant.h"

namespace pagoda::kernels::avx_vnni {

double peak_int8(std::int64_t rounds) noexcept {
    const __m256i a = _mm256_set1_epi8(3);
    const __m256i b = _mm256_set1_epi8(5);
    for (std::int64_t round = 0; round < rounds; ++round) {
        asm volatile(
            "%{vex%} vpdpbusd %0, %1, %%ymm4\n\t"
            "%{vex%} vpdpbusd %0, %1, %%ymm5\n\t"
            "%{vex%} vpdpbusd %0, %1, %%ymm6\n\t"
            "%{vex%} vpdpbusd %0, %1, %%ymm7\n\t"
            "%{vex%} vpdpbusd %0, %1, %%ymm8\n\t"
            "%{vex%} vpdpbusd %0, %1, %%ymm9\n\t"
            "%{vex%} vpdpbusd %0, %1, %%ymm10\n\t"
            "%{vex%} vpdpbusd %0, %1, %%ymm11\n\t"
            "%{vex%} vpdpbusd %0, %1, %%ymm12\n\t"
            "%{vex%} vpdpbusd %0, %1, %%ymm13\n\t"
            "%{vex%} vpdpbusd %0, %1, %%ymm14\n\t"
            "%{vex%} vpdpbusd %0, %1, %%ymm15\n\t"
            :
            : "x"(a), "x"(b)
            : "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", "ymm10", "ymm11", "ymm12", "ymm13",
              "ymm14", "ymm15");
    }
    return static_cast<double>(rounds) * 12 * 32 * 2;
}

}  // namespace pagoda::kernels::avx_vnni
