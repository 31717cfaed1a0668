// The densest loops of plain C++, as the compiler's baseline runs them.

#include "kernels/ref/variant.h"

namespace pagoda::kernels::ref {
namespace {

constexpr int kLanes = 64;  // independent sums, enough to hide every latency

// The compiler must take `value` as changed.
template <class T>
void touch(T& value) {
    asm volatile("" : "+m"(value));
}

}  // namespace

double peak_int8(std::int64_t rounds) noexcept {
    std::int32_t sums[kLanes] = {};
    std::int16_t a[kLanes] = {1, 2, 3};
    std::int16_t b[kLanes] = {3, 4, 5};
    touch(a);
    touch(b);
    for (std::int64_t round = 0; round < rounds; ++round) {
        for (int i = 0; i < kLanes; ++i) sums[i] += a[i] * b[i];
        touch(sums);
    }
    return static_cast<double>(rounds) * kLanes * 2;
}

double peak_f32(std::int64_t rounds) noexcept {
    float sums[kLanes] = {};
    float factors[kLanes] = {0.5F, 0.25F};
    touch(factors);
    for (std::int64_t round = 0; round < rounds; ++round) {
        for (int i = 0; i < kLanes; ++i) sums[i] = sums[i] * factors[i] + 1.0F;
        touch(sums);
    }
    return static_cast<double>(rounds) * kLanes * 2;
}

double peak_bf16(std::int64_t /*rounds*/) noexcept {
    return 0;
}

std::uint64_t read_memory(const std::byte* data, std::size_t bytes) noexcept {
    const auto* words = reinterpret_cast<const std::uint64_t*>(data);
    std::uint64_t sums[4] = {};
    for (std::size_t i = 0; i + 4 <= bytes / 8; i += 4)
        for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] ^= words[i + lane];
    return sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
}

}  // namespace pagoda::kernels::ref
