#pragma once
// StopRequests: how often this process was asked to stop, and the waits that this ends. Any thread.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>

namespace pagoda::apps {

class StopRequests {
  public:
    void add();
    // What a condition of wait() looks at has changed.
    void notify();

    void wait_for_first();
    // Until is_done holds, at most that long, and no longer than until a request that no wait has
    // heard of, one from before included: true when it held. is_done is called under a lock and
    // must not call back.
    [[nodiscard]] bool wait(const std::function<bool()>& is_done,
                            std::chrono::steady_clock::time_point until);

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    // Guarded by mutex_:
    int count_ = 0;
    int heard_ = 0;  // of these, by a wait
};

}  // namespace pagoda::apps
