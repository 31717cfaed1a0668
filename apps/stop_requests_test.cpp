#include "stop_requests.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace pagoda::apps {
namespace {

using std::chrono::hours;
using std::chrono::steady_clock;

TEST(StopRequests, AWaitEndsWhenItsConditionHolds) {
    StopRequests stop;
    std::atomic<bool> done{false};
    std::thread other([&] {
        done.store(true);
        stop.notify();
    });
    EXPECT_TRUE(stop.wait([&] { return done.load(); }, steady_clock::now() + hours(1)));
    other.join();
}

TEST(StopRequests, AWaitEndsWithTheNextRequestAndNotWithAnEarlierOne) {
    StopRequests stop;
    stop.add();
    stop.wait_for_first();
    std::thread other;
    std::atomic<bool> waits{false};
    EXPECT_FALSE(stop.wait(
        [&] {
            // Called under the lock: the request below comes after the wait has begun.
            if (!waits.exchange(true)) other = std::thread([&] { stop.add(); });
            return false;
        },
        steady_clock::now() + hours(1)));
    other.join();
}

// Between the first request and the wait there is work: a second one must not get lost in it.
TEST(StopRequests, ARequestThatComesBeforeTheWaitEndsItToo) {
    StopRequests stop;
    stop.add();
    stop.wait_for_first();
    stop.add();
    EXPECT_FALSE(stop.wait([] { return false; }, steady_clock::now() + hours(1)));
}

TEST(StopRequests, AWaitEndsWhenItsTimeIsOver) {
    StopRequests stop;
    EXPECT_FALSE(stop.wait([] { return false; }, steady_clock::now()));
}

}  // namespace
}  // namespace pagoda::apps
