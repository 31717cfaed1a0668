#include "serve/http/descriptor_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace pagoda::http {
namespace {

// In a process of its own: a hard limit never comes back.
[[noreturn]] void exit_with_limit(rlim_t soft, rlim_t hard, std::size_t least, std::size_t most) {
    const rlimit limit{.rlim_cur = soft, .rlim_max = hard};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(2);
    const std::size_t allowed = connections_allowed(4096);
    rlimit after{};
    getrlimit(RLIMIT_NOFILE, &after);
    _exit(after.rlim_cur == hard && allowed >= least && allowed <= most ? 0 : 1);
}

TEST(DescriptorLimit, TheSoftLimitIsRaisedAndTheHardOneLeavesFewerConnections) {
    EXPECT_EXIT(exit_with_limit(100, 512, 300, 448), testing::ExitedWithCode(0), "");
    EXPECT_EXIT(exit_with_limit(70, 70, 1, 1), testing::ExitedWithCode(0), "");
}

TEST(DescriptorLimit, NoMoreThanWantedAreAllowed) {
    EXPECT_EQ(connections_allowed(3), 3U);
    EXPECT_EQ(connections_allowed(0), 1U);
}

}  // namespace
}  // namespace pagoda::http
