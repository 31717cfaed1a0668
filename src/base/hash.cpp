#include "base/hash.h"

#include <algorithm>
#include <random>

#include "base/check.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace pagoda::base {
namespace {

Hash128 from_library(const XXH128_hash_t& hash) {
    return {.low = hash.low64, .high = hash.high64};
}

}  // namespace

std::string Hash128::hex() const {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string out;
    out.reserve(32);
    for (const std::uint64_t half : {high, low}) {
        for (int shift = 60; shift >= 0; shift -= 4) out.push_back(kDigits[(half >> shift) & 0xf]);
    }
    return out;
}

HashKey::HashKey(std::span<const std::byte> seed) {
    const auto outcome =
        XXH3_generateSecret(secret_.data(), secret_.size(), seed.data(), seed.size());
    CHECK(outcome == XXH_OK, "the size of a hash secret does not suit the library");
}

HashKey HashKey::random() {
    std::random_device device;
    std::array<unsigned, 8> seed{};
    for (unsigned& word : seed) word = device();
    return HashKey(std::as_bytes(std::span(seed)));
}

Hash128 hash128(std::span<const std::byte> bytes) {
    return from_library(XXH3_128bits(bytes.data(), bytes.size()));
}

Hash128 hash128(std::span<const std::byte> bytes, const HashKey& key) {
    const std::span<const std::byte> secret = key.secret();
    return from_library(
        XXH3_128bits_withSecret(bytes.data(), bytes.size(), secret.data(), secret.size()));
}

Hash128 hash128(std::string_view text, const HashKey& key) {
    return hash128(std::as_bytes(std::span(text)), key);
}

// The library keeps a pointer to the secret, hence the copy beside its state.
struct Hasher128::State {
    XXH3_state_t library;
    std::array<std::byte, 192> secret;
};

Hasher128::Hasher128() : state_(std::make_unique<State>()) {
    XXH3_128bits_reset(&state_->library);
}

Hasher128::Hasher128(const HashKey& key) : state_(std::make_unique<State>()) {
    const std::span<const std::byte> secret = key.secret();
    std::copy(secret.begin(), secret.end(), state_->secret.begin());
    XXH3_128bits_reset_withSecret(&state_->library, state_->secret.data(), state_->secret.size());
}

Hasher128::~Hasher128() = default;
Hasher128::Hasher128(Hasher128&&) noexcept = default;
Hasher128& Hasher128::operator=(Hasher128&&) noexcept = default;

void Hasher128::update(std::span<const std::byte> bytes) {
    XXH3_128bits_update(&state_->library, bytes.data(), bytes.size());
}

Hash128 Hasher128::digest() const {
    return from_library(XXH3_128bits_digest(&state_->library));
}

}  // namespace pagoda::base
