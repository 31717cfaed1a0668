#include "signal_watch.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <latch>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace pagoda::apps {
namespace {

TEST(SignalWatch, CallsForEverySignal) {
    std::latch heard(2);
    const auto watch = SignalWatch::start([&heard] { heard.count_down(); });
    ASSERT_TRUE(watch.ok());
    std::raise(SIGINT);
    std::raise(SIGTERM);
    heard.wait();
}

// More signals than the pipe has bytes, while none is taken from it: no handler may wait for that.
TEST(SignalWatch, AFloodOfSignalsBlocksNothingAndIsNoneOfTheNextWatch) {
    constexpr int kFlood = 70000;
    std::latch goes_on(1);
    {
        const auto watch = SignalWatch::start([&goes_on] { goes_on.wait(); });
        ASSERT_TRUE(watch.ok());
        for (int signal = 0; signal < kFlood; ++signal) std::raise(SIGINT);
        goes_on.count_down();
    }
    std::atomic<int> count{0};
    std::latch heard(1);
    {
        const auto watch = SignalWatch::start([&] {
            if (++count == 1) heard.count_down();
        });
        ASSERT_TRUE(watch.ok());
        std::raise(SIGINT);
        heard.wait();
    }
    EXPECT_EQ(count.load(), 1);
}

TEST(SignalWatch, SignalsHaveTheirEarlierEffectAgainAfterIt) {
    const auto earlier = std::signal(SIGINT, SIG_IGN);
    ASSERT_TRUE(SignalWatch::start([] {}).ok());
    EXPECT_EQ(std::signal(SIGINT, earlier), SIG_IGN);
}

TEST(SignalWatch, APipeThatTheSystemRefusesIsAnError) {
    // In a process of its own, which has no pipe yet.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto refused = [] {
        const rlimit none{.rlim_cur = 0, .rlim_max = 0};
        setrlimit(RLIMIT_NOFILE, &none);
        const auto watch = SignalWatch::start([] {});
        std::fputs(watch.ok() ? "a watch" : watch.error().message.c_str(), stderr);
        std::_Exit(EXIT_FAILURE);
    };
    EXPECT_EXIT(refused(), testing::ExitedWithCode(EXIT_FAILURE),
                "refuses a pipe: Too many open files; raise the limit of open files");
}

}  // namespace
}  // namespace pagoda::apps
