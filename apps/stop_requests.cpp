#include "stop_requests.h"

namespace pagoda::apps {

void StopRequests::add() {
    {
        const std::lock_guard lock(mutex_);
        ++count_;
    }
    changed_.notify_all();
}

void StopRequests::notify() {
    // With the lock, so that it can't fall between a look at the condition and the wait.
    { const std::lock_guard lock(mutex_); }
    changed_.notify_all();
}

void StopRequests::wait_for_first() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return count_ > 0; });
    heard_ = 1;
}

bool StopRequests::wait(const std::function<bool()>& is_done,
                        std::chrono::steady_clock::time_point until) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, until, [this, &is_done] { return count_ > heard_ || is_done(); });
    heard_ = count_;
    return is_done();
}

}  // namespace pagoda::apps
