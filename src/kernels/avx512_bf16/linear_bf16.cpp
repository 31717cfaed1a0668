#include "kernels/avx512_bf16/variant.h"
#include "kernels/avx512_vnni/tile_vec.h"
#include "kernels/generic/linear_f32_inl.h"

namespace pagoda::kernels::avx512_bf16 {
namespace {

// Pairs of BF16 values in the places of floats (what each member means: tile_policy_inl.h).
struct PairVec : avx512_vnni::TileVec {
    static constexpr int kSlotValues = 2;

    // In assembly, as clang 16 does not survive vectors of bf16.
    static F fma(F a, F b, F c) {
        asm("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
        return c;
    }
    // Slot i is {even[i], odd[i]}.
    static F load_pairs(const std::byte* even, const std::byte* odd) {
        return _mm512_castsi512_ps(
            _mm512_or_si512(load_words(even), _mm512_slli_epi32(load_words(odd), 16)));
    }
    // kLanes slots of the floats at `in`, of which there are `slots` pairs; zeros beyond them.
    static F round_pairs(const std::byte* in, int slots) {
        const std::uint32_t mask = slots < kLanes ? (1U << (2 * slots)) - 1 : ~0U;
        const F low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), in);
        const F high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), in + 64);
        F pairs;
        asm("vcvtne2ps2bf16 %2, %1, %0" : "=v"(pairs) : "v"(high), "v"(low));
        return pairs;
    }

  private:
    static I load_words(const std::byte* in) {
        return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(in)));
    }
};

}  // namespace

void linear_bf16(const LinearArgs& args) noexcept {
    linear_f32_of<PairVec, tensor::DType::kBF16>(args);
}

}  // namespace pagoda::kernels::avx512_bf16
