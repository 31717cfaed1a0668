#include "text/tokenize/charsmap.h"

#include <gtest/gtest.h>

namespace pagoda::text {
namespace {

constexpr std::uint32_t kIsValue = 1U << 31;

void put_u32(std::string& out, std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift & 0xFFU);
}

std::string blob_of(const std::vector<std::uint32_t>& units, std::string_view replacements) {
    std::string blob;
    put_u32(blob, static_cast<std::uint32_t>(units.size() * 4));
    for (const std::uint32_t unit : units) put_u32(blob, unit);
    blob += replacements;
    return blob;
}

// The root leads by 'a' to a unit that ends a key, and on by 'b' to another. Children of a unit
// lie at its own index xor its offset xor their label; label 0 is the value.
std::vector<std::uint32_t> units_for_a_and_ab() {
    std::vector<std::uint32_t> units(1024, 0);
    const auto unit = [](std::uint32_t offset, char label, bool ends) {
        return offset << 10 | (ends ? 0x100U : 0U) | static_cast<unsigned char>(label);
    };
    units[0] = 256U << 10;  // base 256
    const std::uint32_t a = 256 ^ 'a';
    units[a] = unit(a ^ 512, 'a', true);  // base 512
    units[512] = kIsValue | 0;
    const std::uint32_t b = 512 ^ 'b';
    units[b] = unit(b ^ 768, 'b', true);  // base 768
    units[768] = kIsValue | 2;
    return units;
}

constexpr std::string_view kReplacements("x\0yz\0", 5);

std::string error_of(std::string_view blob) {
    const auto map = CharsMap::parse(blob);
    return map.ok() ? "" : map.error().message;
}

TEST(CharsMap, FindsTheLongestKey) {
    const auto map = CharsMap::parse(blob_of(units_for_a_and_ab(), kReplacements));
    ASSERT_TRUE(map.ok()) << map.error().message;
    EXPECT_EQ(map->longest_prefix("ab!").bytes, 2U);
    EXPECT_EQ(map->longest_prefix("ab!").replacement, "yz");
    EXPECT_EQ(map->longest_prefix("ac").bytes, 1U);
    EXPECT_EQ(map->longest_prefix("ac").replacement, "x");
    EXPECT_EQ(map->longest_prefix("b").bytes, 0U);
    EXPECT_EQ(map->longest_prefix("").bytes, 0U);
    EXPECT_EQ(CharsMap().longest_prefix("ab").bytes, 0U);
}

TEST(CharsMap, DamagedTablesAreRefused) {
    const std::string good = blob_of(units_for_a_and_ab(), kReplacements);
    EXPECT_EQ(error_of(good), "");
    EXPECT_NE(error_of(good.substr(0, 7)), "");
    EXPECT_NE(error_of(good.substr(0, 2000)), "") << "the array is longer than the blob";
    EXPECT_NE(error_of(good.substr(0, good.size() - 1)), "") << "the last replacement has no end";
    std::vector<std::uint32_t> units = units_for_a_and_ab();
    units[512] = kIsValue | 99;
    EXPECT_NE(error_of(blob_of(units, kReplacements)), "") << "a replacement outside the blob";
    units = units_for_a_and_ab();
    units[512] = 0;
    EXPECT_NE(error_of(blob_of(units, kReplacements)), "") << "a key without a value";
    units = units_for_a_and_ab();
    const std::uint32_t b = 512 ^ 'b';
    const std::uint32_t a = 256 ^ 'a';
    units[b] = (b ^ a ^ 'a') << 10 | 'b';  // 'a' leads back to the first unit
    EXPECT_NE(error_of(blob_of(units, kReplacements)), "") << "a way in a circle";
}

}  // namespace
}  // namespace pagoda::text
