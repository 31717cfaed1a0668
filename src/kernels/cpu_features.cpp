#include <array>
#include <cstring>

#include "kernels/registry.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace pagoda::kernels {

#if defined(__x86_64__)
namespace {

struct Leaf {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// Zeros for a leaf that the CPU does not have.
Leaf cpuid(unsigned leaf, unsigned subleaf = 0) {
    Leaf out;
    if (__get_cpuid_count(leaf, subleaf, &out.eax, &out.ebx, &out.ecx, &out.edx) == 0) return {};
    return out;
}

constexpr bool bit(unsigned word, int index) {
    return ((word >> index) & 1U) != 0;
}

// XCR0: the register states that the operating system saves. REQUIRES: OSXSAVE.
unsigned saved_states() {
    unsigned low = 0;
    unsigned high = 0;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

// Where VDPBF16PS does twice the work of an f32 multiplication: AMD's cores, from Zen 4 on, which
// have two a cycle. Intel's Xeons that have it do at most as much as with f32 (Emerald Rapids
// half).
bool has_fast_bf16() {
    const Leaf vendor = cpuid(0);
    return vendor.ebx == 0x68747541U && vendor.edx == 0x69746e65U &&  // "Auth" "enti"
           vendor.ecx == 0x444d4163U;                                 // "cAMD"
}

constexpr unsigned kStateYmm = 0x6;       // XMM, upper halves of YMM
constexpr unsigned kStateZmm = 0xe6;      // and masks, upper halves of ZMM, ZMM16-31
constexpr unsigned kStateTile = 0x60000;  // AMX configuration and tiles

}  // namespace

CpuFeature detect_cpu_features() {
    const Leaf basic = cpuid(1);
    if (!bit(basic.ecx, 27)) return CpuFeature::kNone;  // OSXSAVE: no state beyond SSE
    const unsigned states = saved_states();
    const Leaf extended = cpuid(7);
    const Leaf extended1 = cpuid(7, 1);

    CpuFeature found = CpuFeature::kNone;
    const auto add = [&](bool present, CpuFeature feature) {
        if (present) found = found | feature;
    };
    const bool ymm = (states & kStateYmm) == kStateYmm && bit(basic.ecx, 28);
    const bool avx2 = ymm && bit(extended.ebx, 5) && bit(basic.ecx, 12) &&  // AVX2, FMA
                      bit(basic.ecx, 29) && bit(extended.ebx, 8);           // F16C, BMI2
    add(avx2, CpuFeature::kAvx2);
    add(avx2 && bit(extended1.eax, 4), CpuFeature::kAvxVnni);

    const bool zmm = avx2 && (states & kStateZmm) == kStateZmm;
    const bool avx512 = zmm && bit(extended.ebx, 16) && bit(extended.ebx, 17) &&  // F, DQ
                        bit(extended.ebx, 30) && bit(extended.ebx, 31);           // BW, VL
    add(avx512, CpuFeature::kAvx512);
    add(avx512 && bit(extended.ecx, 11), CpuFeature::kAvx512Vnni);
    const bool bf16 = avx512 && bit(extended1.eax, 5);
    add(bf16, CpuFeature::kAvx512Bf16);
    add(bf16 && has_fast_bf16(), CpuFeature::kFastBf16);

    const bool tiles = (states & kStateTile) == kStateTile && bit(extended.edx, 24);
    add(tiles && bit(extended.edx, 25), CpuFeature::kAmxInt8);
    add(tiles && bit(extended.edx, 22), CpuFeature::kAmxBf16);
    return found;
}

std::string cpu_model_name() {
    if (cpuid(0x80000000U).eax < 0x80000004U) return "unknown x86-64";
    std::array<char, 49> text{};
    for (unsigned part = 0; part < 3; ++part) {
        const Leaf words = cpuid(0x80000002U + part);
        static_assert(sizeof(words) == 16);
        std::memcpy(text.data() + std::size_t{part} * 16, &words, 16);
    }
    std::string name(text.data());
    const std::size_t first = name.find_first_not_of(' ');
    const std::size_t last = name.find_last_not_of(' ');
    return first == std::string::npos ? "unknown x86-64" : name.substr(first, last - first + 1);
}

#else

CpuFeature detect_cpu_features() {
    return CpuFeature::kNone;
}
std::string cpu_model_name() {
    return "unknown";
}

#endif

}  // namespace pagoda::kernels
