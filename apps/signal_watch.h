#pragma once
// SignalWatch: SIGINT and SIGTERM as calls of a function, on a thread of its own, where anything is
// allowed that a signal handler is not. One at a time in a process: the handler writes to a pipe
// that a process-wide variable names, since a handler can be given no context. The signals' earlier
// effects come back when the watch ends.

#include <functional>
#include <memory>

namespace pagoda::apps {

class SignalWatch {
  public:
    // Called once for every signal that arrives.
    explicit SignalWatch(std::function<void()> on_signal);
    ~SignalWatch();
    SignalWatch(const SignalWatch&) = delete;
    SignalWatch& operator=(const SignalWatch&) = delete;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda::apps
