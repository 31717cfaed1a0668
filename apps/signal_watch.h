#pragma once
// SignalWatch: SIGINT and SIGTERM as calls of a function, on a thread of its own, where anything is
// allowed that a signal handler is not. One at a time in a process: the handler writes to a pipe
// that process-wide variables name, since a handler can be given no context. The signals' earlier
// effects come back when the watch ends.

#include <functional>
#include <memory>

#include "base/result.h"

namespace pagoda::apps {

class SignalWatch {
  public:
    // on_signal is called once for every signal that arrives before the watch ends; of more than
    // 60000 that wait for it, the rest is left out. Fails when the system refuses the pipe or the
    // thread.
    [[nodiscard]] static base::Result<SignalWatch> start(std::function<void()> on_signal);
    ~SignalWatch();
    SignalWatch(SignalWatch&& other) noexcept;
    SignalWatch& operator=(SignalWatch&& other) = delete;

  private:
    struct Impl;
    explicit SignalWatch(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda::apps
