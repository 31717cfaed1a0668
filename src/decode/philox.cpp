#include "decode/philox.h"

namespace pagoda::decode {

namespace {

constexpr int kRounds = 10;
constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;  // golden ratio
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1

constexpr std::uint32_t high_half(std::uint64_t x) {
    return static_cast<std::uint32_t>(x >> 32);
}
constexpr std::uint32_t low_half(std::uint64_t x) {
    return static_cast<std::uint32_t>(x);
}

PhiloxBlock mix(const PhiloxBlock& counter, const PhiloxKey& key) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * counter[2];
    return {high_half(product1) ^ counter[1] ^ key[0], low_half(product1),
            high_half(product0) ^ counter[3] ^ key[1], low_half(product0)};
}

}  // namespace

PhiloxBlock philox4x32(PhiloxBlock counter, PhiloxKey key) noexcept {
    for (int round = 0; round < kRounds; ++round) {
        counter = mix(counter, key);
        key[0] += kWeyl0;
        key[1] += kWeyl1;
    }
    return counter;
}

double uniform_at(std::uint64_t seed, std::uint64_t position) noexcept {
    const PhiloxBlock random = philox4x32({low_half(position), high_half(position), 0, 0},
                                          {low_half(seed), high_half(seed)});
    const std::uint64_t bits = (std::uint64_t{random[1]} << 32) | random[0];
    return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace pagoda::decode
