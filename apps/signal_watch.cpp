#include "signal_watch.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include "base/check.h"
#include "base/thread.h"

namespace pagoda::apps {
namespace {

// The pipe of all watches, -1 before the first. It is never closed: a handler that is still under
// way when its watch has ended writes to it, and to nothing that took over its descriptor.
std::atomic<int> read_end{-1};
std::atomic<int> write_end{-1};
std::atomic<bool> is_watched{false};
static_assert(std::atomic<int>::is_always_lock_free);

// The pipe never blocks: a full one holds signals enough.
void wake() {
    constexpr char kByte = 's';
    static_cast<void>(!write(write_end.load(), &kByte, 1));
}

void handle(int) {
    const int saved = errno;
    wake();
    errno = saved;
}

base::Status open_pipe() {
    if (write_end.load() >= 0) return {};
    std::array<int, 2> ends{-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
        return base::Error{base::ErrorCode::kResourceExhausted,
                           fmt::format("signals can't be watched, the system refuses a pipe: {}; "
                                       "raise the limit of open files (ulimit -n)",
                                       std::strerror(errno))};
    CHECK(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0, "a pipe of ours can be made not to block");
    read_end.store(ends[0]);
    write_end.store(ends[1]);
    return {};
}

// What an earlier watch has left is not for the next.
void drain_pipe() {
    pollfd ready{.fd = read_end.load(), .events = POLLIN, .revents = 0};
    std::array<char, 4096> bytes{};
    while (poll(&ready, 1, 0) == 1 && read(ready.fd, bytes.data(), bytes.size()) > 0) {
    }
}

}  // namespace

struct SignalWatch::Impl {
    struct sigaction old_interrupt {};
    struct sigaction old_terminate {};
    std::function<void()> on_signal;
    std::atomic<bool> is_over{false};
    std::thread thread;

    Impl() = default;
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    void run() const {
        for (char byte = 0;;) {
            const ssize_t got = read(read_end.load(), &byte, 1);
            if (got < 0 && errno == EINTR) continue;
            if (got != 1 || is_over.load()) return;
            on_signal();
        }
    }

    void listen() {
        struct sigaction action {};
        action.sa_handler = handle;
        action.sa_flags = SA_RESTART;
        sigemptyset(&action.sa_mask);
        sigaction(SIGINT, &action, &old_interrupt);
        sigaction(SIGTERM, &action, &old_terminate);
    }

    ~Impl() {
        if (thread.joinable()) {
            sigaction(SIGINT, &old_interrupt, nullptr);
            sigaction(SIGTERM, &old_terminate, nullptr);
            is_over.store(true);
            wake();
            thread.join();
        }
        is_watched.store(false);
    }
};

SignalWatch::SignalWatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SignalWatch::SignalWatch(SignalWatch&& other) noexcept = default;
SignalWatch::~SignalWatch() = default;

base::Result<SignalWatch> SignalWatch::start(std::function<void()> on_signal) {
    CHECK(!is_watched.exchange(true), "one watch at a time");
    auto impl = std::make_unique<Impl>();
    if (const auto opened = open_pipe(); !opened) return opened.error();
    drain_pipe();
    impl->on_signal = std::move(on_signal);
    auto thread = base::start_thread("signals", [impl = impl.get()] { impl->run(); });
    if (!thread) return std::move(thread).error();
    impl->thread = std::move(thread).value();
    impl->listen();
    return SignalWatch(std::move(impl));
}

}  // namespace pagoda::apps
