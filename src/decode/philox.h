#pragma once
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC'11):
// a bijection of a 128-bit counter under a 64-bit key. No state, hence no order: what a position
// draws does not depend on what was drawn before it. Free functions, thread-safe.

#include <array>
#include <cstdint>

namespace pagoda::decode {

using PhiloxBlock = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

[[nodiscard]] PhiloxBlock philox4x32(PhiloxBlock counter, PhiloxKey key) noexcept;

// Uniform in [0, 1), 53 bits: the draw of the token at `position` under `seed`.
[[nodiscard]] double uniform_at(std::uint64_t seed, std::uint64_t position) noexcept;

}  // namespace pagoda::decode
