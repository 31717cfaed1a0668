// Damage of every kind to a valid file: the reader either refuses it with one line or accepts it,
// and what it accepts can be described and read to the last byte. Run with a sanitizer, this is the
// proof that no number in a file is trusted.

#include <algorithm>
#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "formats/describe.h"
#include "formats/gguf_reader.h"
#include "formats/gguf_writer.h"
#include "formats/sample_gguf_for_test.h"

namespace pagoda::formats {
namespace {

// Of the sample's tensors, from the first to the end of the file.
constexpr std::size_t kDataBytes = 640;

std::vector<std::byte> sample_bytes() {
    const SampleGguf sample;
    auto bytes = encode_gguf(sample.file);
    EXPECT_TRUE(bytes.ok()) << bytes.error().message;
    return *std::move(bytes);
}

// Returns whether the file was accepted.
bool survives(const std::vector<std::byte>& bytes) {
    const auto checkpoint = checkpoint_from_gguf(bytes, "damaged.gguf");
    if (!checkpoint.ok()) {
        EXPECT_EQ(checkpoint.error().message.find('\n'), std::string::npos);
        EXPECT_EQ(checkpoint.error().message.rfind("damaged.gguf: ", 0), 0U);
        return false;
    }
    for (const CheckpointTensor& tensor : checkpoint->tensors) {
        const volatile std::byte* data = tensor.view.data;
        for (std::size_t index = 0; index < tensor.view.bytes; ++index)
            static_cast<void>(data[index]);
    }
    EXPECT_FALSE(describe(*checkpoint).dump().empty());
    return true;
}

TEST(DamagedGguf, SurvivesFlippedBitsInEveryByteOfItsHeader) {
    std::vector<std::byte> bytes = sample_bytes();
    for (std::size_t index = 0; index < bytes.size() - kDataBytes; ++index) {
        for (const std::byte flip : {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}}) {
            bytes[index] ^= flip;
            static_cast<void>(survives(bytes));
            bytes[index] ^= flip;
        }
    }
    EXPECT_TRUE(survives(bytes));
}

TEST(DamagedGguf, SurvivesRandomBytes) {
    const std::vector<std::byte> whole = sample_bytes();
    std::mt19937 random(7);
    for (int round = 0; round < 1500; ++round) {
        std::vector<std::byte> bytes = whole;
        const unsigned changes = 1 + random() % 8;
        for (unsigned change = 0; change < changes; ++change)
            bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        static_cast<void>(survives(bytes));
    }
}

TEST(DamagedGguf, SurvivesHugeNumbersEverywhere) {
    const std::vector<std::byte> whole = sample_bytes();
    constexpr std::array<std::uint64_t, 3> kNumbers{0, std::uint64_t{1} << 63, ~std::uint64_t{0}};
    for (std::size_t at = 0; at + 8 <= whole.size() - kDataBytes; ++at) {
        for (const std::uint64_t number : kNumbers) {
            std::vector<std::byte> bytes = whole;
            std::copy_n(reinterpret_cast<const std::byte*>(&number), sizeof number,
                        bytes.begin() + static_cast<std::ptrdiff_t>(at));
            static_cast<void>(survives(bytes));
        }
    }
}

TEST(DamagedGguf, IsRefusedAtEveryLengthButItsOwn) {
    const std::vector<std::byte> whole = sample_bytes();
    // Only the padding after the last tensor may be missing: 60 bytes of data end at 4 before the
    // end.
    for (std::size_t length = 0; length < whole.size() - 4; ++length)
        EXPECT_FALSE(survives({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}))
            << length;
    EXPECT_TRUE(survives({whole.begin(), whole.end() - 4}));
    std::vector<std::byte> longer = whole;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(survives(longer));
}

}  // namespace
}  // namespace pagoda::formats
