#include "serve/http/listener.h"

#include <algorithm>
#include <ctime>
#include <string>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/http/client_for_test.h"

namespace pagoda::http {
namespace {

using test::TestServer;

bool can_connect(const sockaddr* address, socklen_t size) {
    const int fd = socket(address->sa_family, SOCK_STREAM, 0);
    if (fd < 0) return false;
    const bool connected = connect(fd, address, size) == 0;
    close(fd);
    return connected;
}

bool answers_v4(std::uint16_t port) {
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return can_connect(reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

bool answers_v6(std::uint16_t port) {
    const sockaddr_in6 address{
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    return can_connect(reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

bool has_v6_loopback() {
    const int fd = socket(AF_INET6, SOCK_STREAM, 0);
    const sockaddr_in6 address{.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const bool bound =
        fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    if (fd >= 0) close(fd);
    return bound;
}

// A server that listens and never accepts: the kernel completes the connections.
struct Listening {
    boost::asio::io_context context;
    base::Logger logger{{.level = base::LogLevel::kError}};
    Listener listener{context, logger, nullptr};
};

TEST(Listener, EveryAddressOfAHostIsBoundToOnePort) {
    // Nothing stands for every address of the machine.
    Listening any;
    ASSERT_TRUE(any.listener.listen("", 0).ok());
    EXPECT_TRUE(answers_v4(any.listener.port()));
    EXPECT_EQ(answers_v6(any.listener.port()), has_v6_loopback());
}

TEST(Listener, LocalhostIsReachedByTheAddressesThatTheMachineHas) {
    Listening local;
    ASSERT_TRUE(local.listener.listen("localhost", 0).ok());
    EXPECT_TRUE(answers_v4(local.listener.port()));
}

TEST(Listener, ATakenPortIsRefusedWithAddressAndReason) {
    Listening one;
    ASSERT_TRUE(one.listener.listen("127.0.0.1", 0).ok());
    Listening other;
    const auto refused = other.listener.listen("127.0.0.1", one.listener.port());
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().message,
              "can't listen on 127.0.0.1:" + std::to_string(one.listener.port()) +
                  ": Address already in use");
    Listening third;
    EXPECT_FALSE(third.listener.listen("", one.listener.port()).ok())
        << "no address of a host may be missing because another program has it";
}

TEST(Listener, AHostThatIsNotOfThisMachineIsRefused) {
    Listening far;
    const auto refused = far.listener.listen("192.0.2.1", 0);  // of documentation (RFC 5737)
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find("192.0.2.1"), std::string::npos);
}

// The lowest free descriptor: with a limit of that, none can be opened.
rlim_t next_descriptor() {
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(fd);
    return static_cast<rlim_t>(fd);
}

TEST(Listener, WaitsForDescriptorsWhenNoneAreLeftAndSaysSoOnce) {
    testing::internal::CaptureStderr();
    {
        const TestServer server({}, nullptr, base::LogLevel::kWarning);
        const int waiting = socket(AF_INET, SOCK_STREAM, 0);
        rlimit before{};
        getrlimit(RLIMIT_NOFILE, &before);
        const rlimit none{.rlim_cur = next_descriptor(), .rlim_max = before.rlim_max};
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
        sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(server.port())};
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(connect(waiting, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        const std::string request = test::get("/now");
        EXPECT_GT(send(waiting, request.data(), request.size(), MSG_NOSIGNAL), 0);
        // Long enough for thousands of tries by one that does not wait.
        timespec busy_before{};
        timespec busy_after{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &busy_before);
        pollfd readable{.fd = waiting, .events = POLLIN, .revents = 0};
        EXPECT_EQ(poll(&readable, 1, 300), 0) << "it can't have been accepted";
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &busy_after);
        const double busy = static_cast<double>(busy_after.tv_sec - busy_before.tv_sec) +
                            static_cast<double>(busy_after.tv_nsec - busy_before.tv_nsec) * 1e-9;
        EXPECT_LT(busy, 0.1) << "a core burns";
        ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
        char byte = 0;
        EXPECT_EQ(read(waiting, &byte, 1), 1) << "who waited is served";
        close(waiting);
    }
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_NE(log.find("connections can't be accepted: Too many open files"), std::string::npos)
        << log;
    EXPECT_NE(log.find("connections are accepted again"), std::string::npos) << log;
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
}

}  // namespace
}  // namespace pagoda::http
