#include "formats/gguf_parser.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/raw_gguf_for_test.h"

namespace pagoda::formats {
namespace {

constexpr std::uint64_t kHuge = std::uint64_t{1} << 63;

// The message with which a file is refused.
std::string refusal(const RawGguf& raw) {
    const base::Result<GgufFile> file = parse_gguf(raw.bytes(), "model.gguf");
    if (file.ok()) return "accepted";
    EXPECT_EQ(file.error().message.find('\n'), std::string::npos);
    EXPECT_EQ(file.error().message.rfind("model.gguf: ", 0), 0U) << file.error().message;
    return file.error().message.substr(std::string("model.gguf: ").size());
}

// Whether the refusal says all of that.
void expect_refusal(const RawGguf& raw, const std::vector<std::string>& parts) {
    const std::string message = refusal(raw);
    for (const std::string& part : parts)
        EXPECT_NE(message.find(part), std::string::npos)
            << "\"" << part << "\" is not in: " << message;
}

// One tensor of 8 floats in a whole file, and the ways in which it can be wrong.
RawGguf one_tensor(std::uint64_t values, std::uint64_t offset, std::size_t data_bytes) {
    RawGguf raw;
    raw.header(3, 1, 0).row("w", values, offset).pad().zeros(data_bytes);
    return raw;
}

TEST(GgufParser, ReadsEveryTypeOfValue) {
    RawGguf raw;
    raw.header(3, 0, 12);
    raw.key("u8", GgufType::kUint8).put<std::uint8_t>(200);
    raw.key("i8", GgufType::kInt8).put<std::int8_t>(-100);
    raw.key("u16", GgufType::kUint16).put<std::uint16_t>(65535);
    raw.key("i16", GgufType::kInt16).put<std::int16_t>(-32768);
    raw.key("u32", GgufType::kUint32).put<std::uint32_t>(4294967295U);
    raw.key("i32", GgufType::kInt32).put<std::int32_t>(-7);
    raw.key("f32", GgufType::kFloat32).put(0.5F);
    raw.key("bool", GgufType::kBool).put<std::uint8_t>(1);
    raw.key("string", GgufType::kString).text("a\0b");
    raw.key("u64", GgufType::kUint64).put<std::uint64_t>(1ULL << 62);
    raw.key("i64", GgufType::kInt64).put<std::int64_t>(-(1LL << 62));
    raw.key("f64", GgufType::kFloat64).put(0.1);
    const base::Result<GgufFile> file = parse_gguf(raw.bytes(), "model.gguf");
    ASSERT_TRUE(file.ok()) << file.error().message;
    const std::vector<MetaValue> expected{std::int64_t{200},
                                          std::int64_t{-100},
                                          std::int64_t{65535},
                                          std::int64_t{-32768},
                                          std::int64_t{4294967295},
                                          std::int64_t{-7},
                                          0.5,
                                          true,
                                          std::string("a"),
                                          std::int64_t{1LL << 62},
                                          std::int64_t{-(1LL << 62)},
                                          0.1};
    ASSERT_EQ(file->entries.size(), expected.size());
    for (std::size_t index = 0; index < expected.size(); ++index)
        EXPECT_EQ(file->entries[index].value, expected[index]) << file->entries[index].key;
}

TEST(GgufParser, ReadsArraysOfArrays) {
    RawGguf raw;
    raw.header(3, 0, 1).key("pairs", GgufType::kArray);
    raw.put<std::uint32_t>(9).put<std::uint64_t>(2);
    raw.put<std::uint32_t>(4).put<std::uint64_t>(2).put<std::uint32_t>(1).put<std::uint32_t>(2);
    raw.put<std::uint32_t>(4).put<std::uint64_t>(0);
    const base::Result<GgufFile> file = parse_gguf(raw.bytes(), "model.gguf");
    ASSERT_TRUE(file.ok()) << file.error().message;
    const MetaArray first{std::vector<std::int64_t>{1, 2}};
    const MetaArray second{std::vector<std::int64_t>{}};
    EXPECT_EQ(file->entries[0].value, MetaValue(MetaArray{std::vector<MetaArray>{first, second}}));
    EXPECT_EQ(file->entries[0].item_type, GgufType::kUint32);
}

TEST(GgufParser, GivesShapesOutermostFirstAndPointsAtTheData) {
    RawGguf raw;
    raw.header(2, 2, 1).u32_entry("general.alignment", 64);
    raw.text("a").put<std::uint32_t>(2).put<std::uint64_t>(3).put<std::uint64_t>(2);
    raw.put<std::uint32_t>(0).put<std::uint64_t>(0);
    raw.text("b")
        .put<std::uint32_t>(1)
        .put<std::uint64_t>(32)
        .put<std::uint32_t>(8)
        .put<std::uint64_t>(64);
    raw.pad(64);
    const std::size_t data_begin = raw.bytes().size();
    raw.zeros(64 + 34);
    const base::Result<GgufFile> file = parse_gguf(raw.bytes(), "model.gguf");
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ(file->version, 2U);
    EXPECT_EQ(file->tensors[0].shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(file->tensors[0].data.data(), raw.bytes().data() + data_begin);
    EXPECT_EQ(file->tensors[0].data.size(), 24U);
    EXPECT_EQ(file->tensors[1].dtype, tensor::DType::kQ8_0);
    EXPECT_EQ(file->tensors[1].data.data(), raw.bytes().data() + data_begin + 64);
    EXPECT_EQ(file->tensors[1].data.size(), 34U);
}

TEST(GgufParser, RefusesOtherFilesAndVersionsByName) {
    RawGguf zip;
    zip.put('P').put('K').put('\3').put('\4');
    expect_refusal(zip, {"not a GGUF file", "PK\\x03\\x04"});
    RawGguf stub;
    stub.put('G').put('G');
    expect_refusal(stub, {"ends after 2 bytes", "header"});
    expect_refusal(RawGguf().header(1, 0, 0), {"version 1"});
    expect_refusal(RawGguf().header(0x03000000U, 0, 0), {"big-endian"});
    expect_refusal(RawGguf().header(4, 0, 0), {"version 4", "2 and 3"});
}

TEST(GgufParser, RefusesCountsThatTheFileCannotHold) {
    expect_refusal(RawGguf().header(3, kHuge, 0), {"9223372036854775808 tensors", "at most 0"});
    expect_refusal(RawGguf().header(3, 0, kHuge), {"9223372036854775808 metadata entries"});
    expect_refusal(RawGguf().header(3, 1, 1).zeros(20), {"1 tensors", "20 bytes"});
}

TEST(GgufParser, RefusesEmptyAndOversizedNames) {
    expect_refusal(RawGguf().header(3, 0, 1).text("").put<std::uint32_t>(4).zeros(8),
                   {"metadata key 1 of 1", "0 bytes"});
    expect_refusal(RawGguf().header(3, 0, 1).put(std::uint64_t{1} << 60).zeros(16),
                   {"metadata key 1 of 1", "1152921504606846976 bytes", "65535"});
    expect_refusal(RawGguf().header(3, 0, 1).put<std::uint64_t>(1000).zeros(16),
                   {"metadata key 1 of 1", "ends after"});
    expect_refusal(RawGguf().header(3, 1, 0).put<std::uint64_t>(0).zeros(40),
                   {"tensor 1 of 1", "0 bytes"});
}

TEST(GgufParser, RefusesValuesThatAreNotWhatTheySay) {
    expect_refusal(RawGguf().header(3, 0, 1).text("k").put<std::uint32_t>(13).zeros(8),
                   {"key 'k'", "value type 13"});
    expect_refusal(RawGguf().header(3, 0, 1).key("k", GgufType::kBool).put<std::uint8_t>(7),
                   {"key 'k'", "stored as 7"});
    expect_refusal(RawGguf().header(3, 0, 1).key("k", GgufType::kUint64).put(kHuge),
                   {"key 'k'", "9223372036854775808"});
    expect_refusal(RawGguf().header(3, 0, 1).key("k", GgufType::kString).put(kHuge),
                   {"key 'k'", "string of 9223372036854775808 bytes", "0 bytes are left"});
    expect_refusal(RawGguf().header(3, 0, 1).key("k", GgufType::kFloat64).put(1.0F),
                   {"ends after", "key 'k'"});
}

TEST(GgufParser, RefusesArraysThatCannotBe) {
    const auto array = [](std::uint32_t type, std::uint64_t count) {
        RawGguf raw;
        raw.header(3, 0, 1).key("k", GgufType::kArray).put(type).put(count);
        return raw;
    };
    expect_refusal(array(8, std::uint64_t{1} << 61).zeros(16),
                   {"key 'k'", "2305843009213693952 string items", "hold 2"});
    expect_refusal(array(4, 5).zeros(16), {"key 'k'", "5 u32 items", "hold 4"});
    expect_refusal(array(77, 0), {"key 'k'", "item type 77"});
    expect_refusal(array(0, kGgufMaxArrayItems + 1).zeros(kGgufMaxArrayItems + 1),
                   {"key 'k'", "16777217 items"});
    expect_refusal(array(8, 2).text("a").put<std::uint64_t>(99), {"key 'k'", "item 1", "99 bytes"});
    RawGguf deep = array(9, 1);
    for (int depth = 0; depth < 40; ++depth) deep.put<std::uint32_t>(9).put<std::uint64_t>(1);
    expect_refusal(deep, {"key 'k'", "nest deeper than 4"});
    RawGguf mixed = array(9, 2);
    mixed.put<std::uint32_t>(0).put<std::uint64_t>(1).put<std::uint8_t>(1);
    mixed.put<std::uint32_t>(7).put<std::uint64_t>(1).put<std::uint8_t>(1).zeros(8);
    expect_refusal(mixed, {"key 'k'", "differ in the type"});
}

TEST(GgufParser, RefusesKeysAndTensorsThatOccurTwice) {
    expect_refusal(RawGguf().header(3, 0, 3).u32_entry("a", 1).u32_entry("b", 1).u32_entry("a", 2),
                   {"key 'a'", "twice"});
    RawGguf raw;
    raw.header(3, 2, 0).row("w", 8, 0).row("w", 8, 32).pad().zeros(64);
    expect_refusal(raw, {"tensor 'w'", "twice"});
}

TEST(GgufParser, RefusesAlignmentsThatAreNoPowerOfTwo) {
    for (const std::uint32_t alignment : {0U, 1U, 4U, 24U, 4294967295U, 1U << 21})
        expect_refusal(RawGguf().header(3, 0, 1).u32_entry("general.alignment", alignment),
                       {"general.alignment", "power of two", std::to_string(alignment)});
    expect_refusal(RawGguf().header(3, 0, 1).string_entry("general.alignment", "32"),
                   {"general.alignment", "integer"});
}

TEST(GgufParser, RefusesImpossibleShapes) {
    const auto shaped = [](const std::vector<std::uint64_t>& extents, std::uint32_t type) {
        RawGguf raw;
        raw.header(3, 1, 0).text("w").put(static_cast<std::uint32_t>(extents.size()));
        for (const std::uint64_t extent : extents) raw.put(extent);
        return raw.put(type).put<std::uint64_t>(0).pad().zeros(64);
    };
    expect_refusal(shaped({}, 0), {"tensor 'w'", "0 dimensions"});
    expect_refusal(shaped({1, 1, 1, 1, 1}, 0), {"tensor 'w'", "5 dimensions", "1 to 4"});
    expect_refusal(shaped({8, 0}, 0), {"tensor 'w'", "dimension of 0", "8 x 0"});
    expect_refusal(shaped({0}, 0), {"tensor 'w'", "dimension of 0"});
    expect_refusal(shaped({kHuge, 2}, 0), {"tensor 'w'", "too large"});
    expect_refusal(shaped({std::uint64_t{1} << 32, std::uint64_t{1} << 32}, 0),
                   {"tensor 'w'", "too large"});
    expect_refusal(shaped({~std::uint64_t{31}}, 2), {"tensor 'w'", "too large", "Q4_0"});
    expect_refusal(shaped({48}, 2), {"tensor 'w'", "48 values", "32", "Q4_0"});
    expect_refusal(shaped({128, 2}, 12), {"tensor 'w'", "128 values", "256", "Q4_K"});
}

TEST(GgufParser, RefusesUnknownTensorTypesByNameOrNumber) {
    const auto typed = [](std::uint32_t type) {
        RawGguf raw;
        return raw.header(3, 1, 0)
            .text("w")
            .put<std::uint32_t>(1)
            .put<std::uint64_t>(256)
            .put(type)
            .put<std::uint64_t>(0)
            .pad()
            .zeros(1024);
    };
    expect_refusal(typed(16), {"tensor 'w'", "IQ2_XXS", "not supported"});
    expect_refusal(typed(34), {"tensor 'w'", "TQ1_0"});
    expect_refusal(typed(9), {"tensor 'w'", "Q8_1"});
    expect_refusal(typed(4000), {"tensor 'w'", "unknown type number 4000"});
    expect_refusal(typed(0xffffffffU), {"tensor 'w'", "4294967295"});
}

TEST(GgufParser, RefusesTensorsOutsideTheFile) {
    EXPECT_EQ(refusal(one_tensor(8, 0, 32)), "accepted");
    expect_refusal(one_tensor(8, 0, 31), {"tensor 'w'", "32 bytes", "31 bytes of data"});
    expect_refusal(one_tensor(8, 32, 32), {"tensor 'w'", "offset 32"});
    expect_refusal(one_tensor(8, kHuge, 32), {"tensor 'w'", "9223372036854775808"});
    expect_refusal(one_tensor(8, ~std::uint64_t{31}, 32),
                   {"tensor 'w'", "offset 18446744073709551584"});
    expect_refusal(one_tensor(std::uint64_t{1} << 59, 0, 32),
                   {"tensor 'w'", "2305843009213693952 bytes"});
}

TEST(GgufParser, RefusesMisalignedAndOverlappingTensors) {
    expect_refusal(one_tensor(8, 8, 64), {"tensor 'w'", "offset 8", "alignment 32"});
    RawGguf raw;
    raw.header(3, 3, 0).row("c", 8, 64).row("a", 16, 0).row("b", 8, 32).pad().zeros(96);
    expect_refusal(raw, {"tensor 'b'", "overlaps tensor 'a'"});
    RawGguf same;
    same.header(3, 2, 0).row("a", 8, 0).row("b", 8, 0).pad().zeros(32);
    expect_refusal(same, {"overlaps"});
}

TEST(GgufParser, RefusesBytesAfterTheLastTensor) {
    EXPECT_EQ(refusal(one_tensor(6, 0, 32)), "accepted");
    expect_refusal(one_tensor(6, 0, 33), {"1 bytes follow the last tensor"});
    RawGguf glued = one_tensor(8, 0, 32);
    glued.header(3, 0, 0);
    expect_refusal(glued, {"another GGUF file follows", "00001-of-0000N"});
}

TEST(GgufParser, AcceptsAFileThatEndsAfterItsMetadata) {
    EXPECT_EQ(refusal(RawGguf().header(3, 0, 1).u32_entry("a", 1)), "accepted");
    EXPECT_EQ(refusal(RawGguf().header(3, 0, 1).u32_entry("a", 1).pad()), "accepted");
}

TEST(GgufParser, EscapesNamesInMessages) {
    RawGguf raw;
    raw.header(3, 0, 1).text("a\nb\x1b[31m").put<std::uint32_t>(13).zeros(8);
    expect_refusal(raw, {"key 'a\\x0ab\\x1b[31m'"});
    RawGguf longer;
    longer.header(3, 0, 1).text(std::string(5000, 'x')).put<std::uint32_t>(13).zeros(8);
    EXPECT_LT(refusal(longer).size(), 200U);
}

TEST(GgufParser, RefusesEveryPrefixOfAFile) {
    RawGguf raw;
    raw.header(3, 2, 2).string_entry("general.architecture", "llama").key("list", GgufType::kArray);
    raw.put<std::uint32_t>(8).put<std::uint64_t>(2).text("one").text("two");
    raw.row("a", 8, 0).row("b", 7, 32).pad().zeros(32 + 28);
    EXPECT_EQ(refusal(raw), "accepted");
    const std::span<const std::byte> whole = raw.bytes();
    for (std::size_t length = 0; length < whole.size(); ++length) {
        // A copy of its own, so that a read beyond it is seen.
        const std::vector<std::byte> prefix(whole.begin(),
                                            whole.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_FALSE(parse_gguf(prefix, "model.gguf").ok()) << length;
    }
}

}  // namespace
}  // namespace pagoda::formats
