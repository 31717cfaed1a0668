#include "sched/forecast.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "kv/index/block_pool.h"

namespace pagoda::sched {
namespace {

TEST(OutputForecast, LearnsLengthsAndForgetsItsPrior) {
    OutputForecast forecast;
    EXPECT_EQ(forecast.remaining(0), 256);
    for (int i = 0; i < 20; ++i) forecast.record(400);
    EXPECT_EQ(forecast.remaining(0), 400);
    EXPECT_EQ(forecast.remaining(399), 1);
    EXPECT_EQ(forecast.remaining(500), 500);  // longer than all: as much again
}

TEST(OutputForecast, CountsOnlyOutputsThatWereLonger) {
    OutputForecast forecast;
    for (int i = 0; i < 30; ++i) forecast.record(i % 3 == 0 ? 1000 : 10);
    EXPECT_NEAR(static_cast<double>(forecast.remaining(0)), (1000 + 2 * 10) / 3.0, 1.0);
    EXPECT_EQ(forecast.remaining(100), 900);
}

TEST(OutputForecast, FollowsAChangeOfLoad) {
    OutputForecast forecast;
    for (int i = 0; i < 1000; ++i) forecast.record(2000);
    for (int i = 0; i < 2000; ++i) forecast.record(8);
    EXPECT_LT(forecast.remaining(0), 50);
}

TEST(OutputForecast, TakesAnyLength) {
    OutputForecast forecast;
    forecast.record(0);
    forecast.record(std::int64_t{1} << 62);
    EXPECT_GE(forecast.remaining(0), 1);
    EXPECT_GE(forecast.remaining(std::int64_t{1} << 61), 1);
}

// Steps through the whole future.
std::int64_t simulated_peak(std::vector<FutureDemand::Item> items) {
    std::int64_t peak = 0;
    for (bool is_alive = true; is_alive;) {
        std::int64_t tokens = 0;
        std::int64_t count = 0;
        is_alive = false;
        for (FutureDemand::Item& item : items) {
            if (item.remaining < 0) continue;
            tokens += item.tokens;
            ++count;
            is_alive = true;
            ++item.tokens;
            --item.remaining;
        }
        const std::int64_t rounding = std::max<std::int64_t>(count - 1, 0) * (kv::kBlockTokens / 2);
        if (count > 0) peak = std::max(peak, kv::blocks_for(tokens + rounding));
    }
    return peak;
}

TEST(FutureDemand, PeakAgreesWithSteppingThroughTheFuture) {
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        FutureDemand demand;
        std::vector<FutureDemand::Item> items;
        for (std::size_t count = random() % 9; count > 0; --count) {
            items.push_back({1 + static_cast<std::int64_t>(random() % 500),
                             static_cast<std::int64_t>(random() % 300)});
            demand.add(items.back());
        }
        const FutureDemand::Item candidate{1 + static_cast<std::int64_t>(random() % 500),
                                           static_cast<std::int64_t>(random() % 300)};
        items.push_back(candidate);
        EXPECT_EQ(demand.peak_with(candidate), simulated_peak(items));
    }
}

}  // namespace
}  // namespace pagoda::sched
