#include "signal_watch.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include "base/check.h"

namespace pagoda::apps {
namespace {

constexpr char kSignal = 's';
constexpr char kEnd = 'e';

// Where the handler writes; -1: nobody watches.
std::atomic<int> pipe_end{-1};
static_assert(std::atomic<int>::is_always_lock_free);

void handle(int) {
    const int saved = errno;
    const int end = pipe_end.load();
    // A full pipe holds signals enough.
    if (end >= 0) static_cast<void>(!write(end, &kSignal, 1));
    errno = saved;
}

}  // namespace

struct SignalWatch::Impl {
    std::array<int, 2> pipe{-1, -1};
    struct sigaction old_interrupt {};
    struct sigaction old_terminate {};
    std::function<void()> on_signal;
    std::thread thread;

    void run() const {
        for (char byte = 0;;) {
            const ssize_t got = read(pipe[0], &byte, 1);
            if (got < 0 && errno == EINTR) continue;
            if (got != 1 || byte == kEnd) return;
            on_signal();
        }
    }
};

SignalWatch::SignalWatch(std::function<void()> on_signal) : impl_(std::make_unique<Impl>()) {
    CHECK(pipe_end.load() < 0, "one watch at a time");
    CHECK(pipe2(impl_->pipe.data(), O_CLOEXEC) == 0, "no pipe for signals");
    impl_->on_signal = std::move(on_signal);
    impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
    pipe_end.store(impl_->pipe[1]);
    struct sigaction action {};
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &impl_->old_interrupt);
    sigaction(SIGTERM, &action, &impl_->old_terminate);
}

SignalWatch::~SignalWatch() {
    sigaction(SIGINT, &impl_->old_interrupt, nullptr);
    sigaction(SIGTERM, &impl_->old_terminate, nullptr);
    pipe_end.store(-1);
    static_cast<void>(!write(impl_->pipe[1], &kEnd, 1));
    impl_->thread.join();
    close(impl_->pipe[0]);
    close(impl_->pipe[1]);
}

}  // namespace pagoda::apps
