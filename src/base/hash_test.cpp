#include "base/hash.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

namespace pagoda::base {
namespace {

std::vector<std::byte> counting_bytes(std::size_t count) {
    std::vector<std::byte> bytes(count);
    for (std::size_t index = 0; index < count; ++index) {
        bytes[index] = static_cast<std::byte>(index * 7 + index / 256);
    }
    return bytes;
}

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

// The vectors are XXH3_128bits of the published algorithm: they must never change, since hashes
// are stored in files.
TEST(Hash128, GivesTheValuesOfTheAlgorithm) {
    EXPECT_EQ(hash128(bytes_of("")).hex(), "99aa06d3014798d86001c324468d497f");
    EXPECT_EQ(hash128(bytes_of("a")).hex(), "a96faf705af16834e6c632b61e964e1f");
    EXPECT_EQ(hash128(bytes_of("abc")).hex(), "06b05ab6733a618578af5f94892f3950");
}

TEST(Hash128, EveryByteAndTheLengthCount) {
    std::unordered_set<Hash128> seen;
    std::vector<std::byte> bytes = counting_bytes(600);
    for (std::size_t length = 0; length <= bytes.size(); ++length) {
        EXPECT_TRUE(seen.insert(hash128(std::span(bytes).first(length))).second) << length;
    }
    for (std::size_t index = 0; index < bytes.size(); ++index) {
        bytes[index] ^= std::byte{1};
        EXPECT_TRUE(seen.insert(hash128(bytes)).second) << index;
        bytes[index] ^= std::byte{1};
    }
}

TEST(Hash128, TheKeyDecides) {
    const HashKey one(bytes_of("tenant one"));
    const HashKey same(bytes_of("tenant one"));
    const HashKey other(bytes_of("tenant two"));
    for (const std::size_t length : {0U, 1U, 8U, 16U, 100U, 200U, 1000U}) {
        const std::vector<std::byte> bytes = counting_bytes(length);
        EXPECT_EQ(hash128(bytes, one), hash128(bytes, same));
        EXPECT_NE(hash128(bytes, one), hash128(bytes, other));
        EXPECT_NE(hash128(bytes, one), hash128(bytes));
        EXPECT_NE(hash128(bytes, HashKey::random()), hash128(bytes, HashKey::random()));
    }
    EXPECT_EQ(hash128("text", one), hash128(bytes_of("text"), one));
}

Hash128 chunked(std::span<const std::byte> bytes, bool is_backwards = false) {
    ChunkedHash hash(bytes.size());
    for (std::int64_t turn = 0; turn < hash.num_chunks(); ++turn) {
        const std::int64_t chunk = is_backwards ? hash.num_chunks() - 1 - turn : turn;
        hash.set(chunk, bytes.subspan(hash.chunk_begin(chunk), hash.chunk_bytes(chunk)));
    }
    return hash.finish();
}

TEST(ChunkedHash, TheOrderOfChunksDoesNotMatterAndEveryByteAndTheLengthDo) {
    constexpr std::size_t kChunk = ChunkedHash::kChunkBytes;
    std::unordered_set<Hash128> seen;
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, kChunk - 1, kChunk, kChunk + 1,
                                     3 * kChunk, 3 * kChunk + 5}) {
        std::vector<std::byte> bytes(length);
        EXPECT_TRUE(seen.insert(chunked(bytes)).second) << length;
        EXPECT_EQ(chunked(bytes), chunked(bytes, true)) << length;
        for (const std::size_t index : {std::size_t{0}, length / 2, length - 1}) {
            if (index >= length || (index == 0 && length == 1)) continue;
            bytes[index] ^= std::byte{1};
            EXPECT_TRUE(seen.insert(chunked(bytes)).second) << length << " " << index;
        }
    }
    // Chunks that change places make another whole.
    std::vector<std::byte> bytes(2 * kChunk);
    bytes[0] = std::byte{1};
    const Hash128 first = chunked(bytes);
    std::swap(bytes[0], bytes[kChunk]);
    EXPECT_NE(chunked(bytes), first);
}

}  // namespace
}  // namespace pagoda::base
