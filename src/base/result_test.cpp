#include "base/result.h"

#include <concepts>
#include <memory>
#include <type_traits>
#include <unordered_set>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/ids.h"

namespace pagoda::base {
namespace {

Result<int> half(int value) {
    if (value % 2 != 0) return invalid("must be even, got " + std::to_string(value), "value");
    return value / 2;
}

TEST(Result, HoldsAValueOrAnError) {
    const Result<int> good = half(8);
    ASSERT_TRUE(good.ok());
    EXPECT_EQ(*good, 4);
    const Result<int> bad = half(7);
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(bad.error().message, "must be even, got 7");
    EXPECT_EQ(bad.error().param, "value");
}

TEST(Result, CarriesMoveOnlyValues) {
    Result<std::unique_ptr<int>> result(std::make_unique<int>(3));
    EXPECT_EQ(**result, 3);
    const std::unique_ptr<int> taken = std::move(result).value();
    EXPECT_EQ(*taken, 3);
}

TEST(Result, OfNothingIsSuccessUnlessAnError) {
    const Status good;
    EXPECT_TRUE(good.ok());
    const Status bad = Error{ErrorCode::kIo, "disk full"};
    EXPECT_EQ(bad.error().message, "disk full");
}

TEST(ResultDeathTest, ReadingTheWrongSideIsABrokenInvariant) {
    EXPECT_DEATH((void)half(7).value(), "must be even, got 7");
    EXPECT_DEATH((void)half(8).error(), "error.. of a success");
    EXPECT_DEATH((void)Status().error(), "error.. of a success");
}

TEST(CheckDeathTest, NamesFileConditionAndMessage) {
    const int blocks = -1;
    EXPECT_DEATH(CHECK(blocks >= 0, "blocks must not be negative"),
                 "result_test.cpp:[0-9]+: CHECK failed: blocks >= 0: blocks must not be negative");
}

TEST(Check, EvaluatesTheMessageOnFailureOnly) {
    int evaluations = 0;
    const auto message = [&evaluations] {
        ++evaluations;
        return std::string("message");
    };
    CHECK(true, message());
    EXPECT_EQ(evaluations, 0);
}

// Ids of different kinds neither mix nor convert.
static_assert(!std::is_convertible_v<SeqId, RequestId>);
static_assert(!std::is_constructible_v<SeqId, RequestId>);
static_assert(!std::is_assignable_v<SeqId&, RequestId>);
static_assert(!std::is_convertible_v<std::uint64_t, SeqId>);
static_assert(!std::is_convertible_v<SeqId, std::uint64_t>);
static_assert(!std::equality_comparable_with<SeqId, RequestId>);
static_assert(!std::equality_comparable_with<BlockId, ClientId>);
static_assert(sizeof(BlockId) == sizeof(std::int32_t));
static_assert(std::is_trivially_copyable_v<BlockId>);
static_assert(SeqId(1) < SeqId(2) && SeqId(3) == SeqId(3));

TEST(StrongId, ServesAsAKey) {
    std::unordered_set<SeqId> ids = {SeqId(1), SeqId(2), SeqId(1)};
    EXPECT_EQ(ids.size(), 2U);
    EXPECT_TRUE(ids.contains(SeqId(2)));
}

TEST(FakeClock, MovesOnlyWhenTold) {
    FakeClock clock;
    const TimePoint start = clock.now();
    EXPECT_EQ(clock.now(), start);
    clock.advance(std::chrono::milliseconds(250));
    EXPECT_EQ(clock.now() - start, std::chrono::milliseconds(250));
    EXPECT_EQ(clock.unix_seconds(), 1'700'000'000);
}

TEST(SystemClock, NeverGoesBackAndKnowsTheYear) {
    const TimePoint first = system_clock().now();
    const TimePoint second = system_clock().now();
    EXPECT_LE(first, second);
    EXPECT_GT(system_clock().unix_seconds(), 1'577'836'800);  // 2020
}

}  // namespace
}  // namespace pagoda::base
