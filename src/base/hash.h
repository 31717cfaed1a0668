#pragma once
// 128-bit hashes of bytes (XXH3). Equal on every machine and build for the same bytes and key. Not
// cryptographic: a key that an attacker does not know keeps collisions from being built in advance,
// and is what tables over outside data use. Value types.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda::base {

struct Hash128 {
    std::uint64_t low = 0;
    std::uint64_t high = 0;

    friend constexpr auto operator<=>(const Hash128&, const Hash128&) = default;
    // 32 lower-case hex digits, high half first.
    [[nodiscard]] std::string hex() const;
};

class HashKey {
  public:
    // The same seed gives the same key. Any number of bytes, also none.
    explicit HashKey(std::span<const std::byte> seed);
    // A key from the operating system's randomness, new at every call.
    [[nodiscard]] static HashKey random();

    [[nodiscard]] std::span<const std::byte> secret() const { return secret_; }

  private:
    std::array<std::byte, 192> secret_{};
};

[[nodiscard]] Hash128 hash128(std::span<const std::byte> bytes);
[[nodiscard]] Hash128 hash128(std::span<const std::byte> bytes, const HashKey& key);
[[nodiscard]] Hash128 hash128(std::string_view text, const HashKey& key);

// ChunkedHash: the hash of many bytes that come in chunks of a fixed size, in any order and from
// any thread: hash128 over the hashes of all chunks and the number of bytes. set() of different
// chunks may be called at once; all else by one thread.
class ChunkedHash {
  public:
    static constexpr std::size_t kChunkBytes = std::size_t{256} << 10;  // the last may be shorter

    explicit ChunkedHash(std::size_t bytes);

    [[nodiscard]] std::int64_t num_chunks() const {
        return static_cast<std::int64_t>(chunks_.size());
    }
    [[nodiscard]] std::size_t chunk_begin(std::int64_t chunk) const {
        return static_cast<std::size_t>(chunk) * kChunkBytes;
    }
    [[nodiscard]] std::size_t chunk_bytes(std::int64_t chunk) const;
    // `bytes` are those of the chunk.
    void set(std::int64_t chunk, std::span<const std::byte> bytes) noexcept;
    // REQUIRES: every chunk was set.
    [[nodiscard]] Hash128 finish() const;

  private:
    std::uint64_t bytes_;
    std::vector<Hash128> chunks_;
};

}  // namespace pagoda::base

template <>
struct std::hash<pagoda::base::Hash128> {
    std::size_t operator()(const pagoda::base::Hash128& value) const noexcept {
        return static_cast<std::size_t>(value.low);
    }
};
