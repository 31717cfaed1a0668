#include "tensor/aligned_buffer.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

namespace pagoda::tensor {
namespace {

constexpr std::size_t kMapped = std::size_t{4} << 20;  // from here on a buffer is a mapping

class AlignedBufferOfSize : public testing::TestWithParam<std::size_t> {};

TEST_P(AlignedBufferOfSize, IsAlignedZeroedAndWritable) {
    AlignedBuffer buffer(GetParam());
    EXPECT_EQ(buffer.bytes(), GetParam());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % AlignedBuffer::kAlignment, 0U);
    EXPECT_TRUE(std::all_of(buffer.data(), buffer.data() + buffer.bytes(),
                            [](std::byte value) { return value == std::byte{0}; }));
    std::fill(buffer.data(), buffer.data() + buffer.bytes(), std::byte{255});
}

INSTANTIATE_TEST_SUITE_P(Sizes, AlignedBufferOfSize,
                         testing::Values(1U, 63U, 64U, 65U, 100000U, kMapped - 1, kMapped,
                                         kMapped + 1));

TEST(AlignedBuffer, OfNothingHasNoMemory) {
    EXPECT_EQ(AlignedBuffer().data(), nullptr);
    EXPECT_EQ(AlignedBuffer(0).data(), nullptr);
    EXPECT_TRUE(AlignedBuffer(0).as<float>().empty());
}

TEST(AlignedBuffer, MovesItsMemory) {
    for (const std::size_t bytes : {std::size_t{256}, kMapped}) {
        AlignedBuffer source(bytes);
        source.as<float>()[3] = 1.5F;
        const std::byte* memory = source.data();
        AlignedBuffer target(std::move(source));
        EXPECT_EQ(target.data(), memory);
        EXPECT_EQ(source.bytes(), 0U);  // NOLINT: what a move leaves behind is the fact
        AlignedBuffer assigned(64);
        assigned = std::move(target);
        EXPECT_EQ(assigned.data(), memory);
        EXPECT_EQ(assigned.as<float>()[3], 1.5F);
        EXPECT_EQ(assigned.as<float>().size(), bytes / sizeof(float));
    }
}

TEST(AlignedBuffer, ThatCanNotBeHadIsNothing) {
    EXPECT_FALSE(AlignedBuffer::try_allocate(std::size_t{1} << 60).has_value());
    const auto taken = AlignedBuffer::try_allocate(kMapped);
    ASSERT_TRUE(taken.has_value());
    EXPECT_EQ(taken->bytes(), kMapped);
    EXPECT_EQ(taken->data()[kMapped - 1], std::byte{0});
}

TEST(AlignedBufferDeathTest, AbortsWhenThereIsNoMemory) {
    EXPECT_DEATH(AlignedBuffer(std::size_t{1} << 60),
                 "no memory for a buffer of 1152921504606846976 bytes");
}

}  // namespace
}  // namespace pagoda::tensor
