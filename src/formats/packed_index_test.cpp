#include "formats/packed_index.h"

#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "formats/packed_index_for_test.h"

namespace pagoda::formats {
namespace {

using base::Result;

// What the parser says to the file; empty when it takes it.
std::string refusal(std::span<const std::byte> bytes, std::uint64_t file_bytes) {
    const Result<PackedIndex> parsed = parse_packed_index(bytes, file_bytes);
    if (parsed) return "";
    EXPECT_EQ(parsed.error().code, base::ErrorCode::kDataLoss);
    EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
    return parsed.error().message;
}

template <class T>
void put(std::vector<std::byte>& bytes, std::size_t offset, T value) {
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

// The sample with one number changed and its checksums right again.
template <class T>
std::string refusal_with(std::size_t offset, T value) {
    const PackedIndex index = sample_packed_index();
    std::vector<std::byte> bytes = encode_packed_index(index);
    put(bytes, offset, value);
    seal_packed_index(bytes);
    return refusal(bytes, index.file_bytes);
}

void expect_part(const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
}

// Of the first entry, "token_embd.weight".
constexpr std::size_t kName = kPackedHeaderBytes + 2;
constexpr std::size_t kType = kName + 17, kRows = kType + 4, kCols = kRows + 8, kOffset = kCols + 8,
                      kBytes = kOffset + 8;

TEST(PackedIndex, WhatIsWrittenIsRead) {
    const PackedIndex index = sample_packed_index();
    const std::vector<std::byte> bytes = encode_packed_index(index);
    EXPECT_EQ(bytes.size(), index.index_bytes);
    EXPECT_EQ(packed_index_bytes(bytes, index.file_bytes).value(), index.index_bytes);
    const Result<PackedIndex> parsed = parse_packed_index(bytes, index.file_bytes);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(*parsed, index);
    EXPECT_EQ(encode_packed_index(*parsed), bytes);
}

TEST(PackedIndex, WeightsLieAlignedBehindEachOtherAndTheFirstOnAPage) {
    const PackedIndex index = sample_packed_index();
    EXPECT_EQ(index.entries.front().offset % kPackedPage, 0);
    std::uint64_t place = index.index_bytes;
    for (const PackedEntry& entry : index.entries) {
        EXPECT_EQ(entry.offset % kPackedAlignment, 0);
        EXPECT_GE(entry.offset, place);
        EXPECT_LT(entry.offset - place, kPackedAlignment);
        place = entry.offset + entry.bytes;
    }
    EXPECT_GE(index.file_bytes, place);
}

TEST(PackedIndex, CutAnywhereItIsRefused) {
    const PackedIndex index = sample_packed_index();
    const std::vector<std::byte> bytes = encode_packed_index(index);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        const auto part = std::span(bytes).first(length);
        EXPECT_NE(refusal(part, length), "") << length;
        EXPECT_NE(refusal(part, index.file_bytes), "") << length;
    }
    for (const std::uint64_t size : {index.file_bytes - 1, index.file_bytes + 1})
        expect_part(refusal(bytes, size), "bytes, not");
}

TEST(PackedIndex, EveryFlippedBitIsSeen) {
    const PackedIndex index = sample_packed_index();
    std::vector<std::byte> bytes = encode_packed_index(index);
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        const auto mask = static_cast<std::byte>(1U << bit % 8);
        bytes[bit / 8] ^= mask;
        EXPECT_NE(refusal(bytes, index.file_bytes), "") << bit;
        bytes[bit / 8] ^= mask;
    }
    EXPECT_EQ(refusal(bytes, index.file_bytes), "");
}

TEST(PackedIndex, NumbersThatLieAreRefusedThoughTheirChecksumsHold) {
    constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
    const PackedIndex index = sample_packed_index();
    expect_part(refusal_with(0, 'X'), "no file of packed weights");
    expect_part(refusal_with(8, std::uint32_t{2}), "version 2 of the format, not 1");
    expect_part(refusal_with(20, std::uint32_t{2}), "something follows the last entry");
    expect_part(refusal_with(20, std::uint32_t{4}), "weight ''");
    expect_part(refusal_with(20, std::numeric_limits<std::uint32_t>::max()), "at most 1048576");
    for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1}, index.index_bytes - 1,
                                     index.file_bytes + kPackedPage, kMost})
        expect_part(refusal_with(24, size), "its index has");
    for (const std::uint64_t size : {std::uint64_t{0}, index.file_bytes - 1, kMost})
        expect_part(refusal_with(32, size), "bytes, not");
    expect_part(refusal_with(40, '\0'), "no header holds");
    expect_part(refusal_with(40, '/'), "no header holds");
    expect_part(refusal_with(71, 'x'), "no header holds");
    expect_part(refusal_with(88, 'x'), "no header holds");
    expect_part(refusal_with(kPackedHeaderBytes, std::uint16_t{65535}), "inside an entry");
    expect_part(refusal_with(kType, std::uint32_t{9999}), "has the type 9999");
    for (const std::int64_t extent : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40}) {
        expect_part(refusal_with(kRows, extent), "values");
        expect_part(refusal_with(kCols, extent), "values");
    }
    for (const std::uint64_t place : {std::uint64_t{0}, std::uint64_t{64}, index.index_bytes + 1,
                                      index.index_bytes + 64, index.file_bytes, kMost})
        expect_part(refusal_with(kOffset, place), "begins at");
    for (const std::uint64_t size :
         {std::uint64_t{0}, index.file_bytes, kMost, kMost - index.index_bytes})
        expect_part(refusal_with(kBytes, size), "are left in the file");
    // A weight that is longer than it was runs into the next one.
    expect_part(refusal_with(kBytes, index.entries.front().bytes + 64), "begins at");
    std::vector<std::byte> longer = encode_packed_index(index);
    put(longer, 32, index.file_bytes + 64);
    seal_packed_index(longer);
    expect_part(refusal(longer, index.file_bytes + 64), "its weights end at");
    expect_part(refusal_with(static_cast<std::size_t>(index.index_bytes) - 1, 'x'),
                "something follows");
}

TEST(PackedIndex, WhatTheFormatCantHoldIsNotWritten) {
    PackedIndex index = sample_packed_index();
    index.key.variant = "../etc";
    EXPECT_FALSE(place_packed_entries(index).ok());
    index = sample_packed_index();
    index.key.variant = std::string(32, 'a');
    EXPECT_FALSE(place_packed_entries(index).ok());
    index = sample_packed_index();
    index.entries[0].bytes = 0;
    EXPECT_FALSE(place_packed_entries(index).ok());
    index.entries[0].bytes = std::numeric_limits<std::uint64_t>::max();
    EXPECT_FALSE(place_packed_entries(index).ok());
    for (PackedEntry& entry : index.entries) entry.bytes = std::uint64_t{1} << 62;
    EXPECT_FALSE(place_packed_entries(index).ok());
    index = sample_packed_index();
    index.entries[0].name.assign(65536, 'n');
    EXPECT_FALSE(place_packed_entries(index).ok());
}

}  // namespace
}  // namespace pagoda::formats
