#include "base/byte_size.h"

#include <gtest/gtest.h>

namespace pagoda::base {
namespace {

TEST(ByteSize, ReadsBinaryAndDecimalUnits) {
    struct Case {
        std::string_view text;
        std::uint64_t bytes;
    };
    const Case cases[] = {
        {"0", 0},
        {"1024", 1024},
        {"7B", 7},
        {"64k", 65536},
        {"64KiB", 65536},
        {"64kB", 64000},
        {"512MiB", 536870912},
        {"512 mib", 536870912},
        {"1.5GB", 1500000000},
        {"1.5g", 1610612736},
        {"0.25KiB", 256},
        {"2TB", 2000000000000},
        {"2T", 2199023255552},
        {"1.1GB", 1100000000},
        {"9223372036854775807", 9223372036854775807ULL},
    };
    for (const Case& one : cases) {
        const Result<std::uint64_t> size = parse_byte_size(one.text);
        ASSERT_TRUE(size.ok()) << one.text;
        EXPECT_EQ(*size, one.bytes) << one.text;
    }
}

TEST(ByteSize, RefusesWhatIsNoSizeAndNamesIt) {
    for (const char* text : {"", " ", "k", "-1", "+1", "1.", ".5", "1..5", "1 ", "1  k",
                             "12 parsecs", "1e3", "0x10", "1,5G", "nan", "1MiBs"}) {
        const Result<std::uint64_t> size = parse_byte_size(text);
        ASSERT_FALSE(size.ok()) << text;
        EXPECT_NE(size.error().message.find("got \"" + std::string(text) + "\""),
                  std::string::npos);
    }
}

TEST(ByteSize, RefusesWhatOverflows) {
    for (const char* text : {"9223372036854775808", "8388608TiB", "99999999999999999999999999"}) {
        const Result<std::uint64_t> size = parse_byte_size(text);
        ASSERT_FALSE(size.ok()) << text;
        EXPECT_NE(size.error().message.find("below 8 EiB"), std::string::npos);
    }
}

TEST(ByteSize, IsWrittenWithThreeDigits) {
    constexpr std::uint64_t kGiB = 1ULL << 30;
    EXPECT_EQ(format_byte_size(0), "0 B");
    EXPECT_EQ(format_byte_size(999), "999 B");
    EXPECT_EQ(format_byte_size(1000), "0.977 KiB");
    EXPECT_EQ(format_byte_size(512ULL << 20), "512 MiB");
    EXPECT_EQ(format_byte_size(kGiB + kGiB * 2 / 5), "1.4 GiB");
    EXPECT_EQ(format_byte_size(1000ULL << 20), "0.977 GiB");
    EXPECT_EQ(format_byte_size(1023ULL << 20), "0.999 GiB");
    EXPECT_EQ(format_byte_size(~0ULL), "16 EiB");
}

}  // namespace
}  // namespace pagoda::base
