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

ChunkedHash::ChunkedHash(std::size_t bytes)
    : bytes_(bytes), chunks_((bytes + kChunkBytes - 1) / kChunkBytes) {}

std::size_t ChunkedHash::chunk_bytes(std::int64_t chunk) const {
    return std::min<std::size_t>(kChunkBytes, bytes_ - chunk_begin(chunk));
}

void ChunkedHash::set(std::int64_t chunk, std::span<const std::byte> bytes) noexcept {
    chunks_[static_cast<std::size_t>(chunk)] = hash128(bytes);
}

Hash128 ChunkedHash::finish() const {
    std::vector<std::uint64_t> words;
    words.reserve(2 * chunks_.size() + 1);
    for (const Hash128& chunk : chunks_) {
        words.push_back(chunk.low);
        words.push_back(chunk.high);
    }
    words.push_back(bytes_);
    return hash128(std::as_bytes(std::span(words)));
}

}  // namespace pagoda::base
