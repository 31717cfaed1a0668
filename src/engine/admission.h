#pragma once
// Admission: how many requests may come in, and whether all have gone again. Sequences that wait
// for their first step are limited in number and in the bytes that their requests hold meanwhile
// (the plan's share for queues); what runs is limited by the scheduler and its KV blocks. Any
// thread.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "base/result.h"

namespace pagoda::engine {

class Admission final {
  public:
    Admission(std::int64_t max_waiting, std::int64_t max_waiting_bytes);

    struct Load {
        std::int64_t num_sequences = 0;
        std::int64_t bytes = 0;
    };
    // They wait and are active from now on, all of them or none. One request may hold more than
    // the limit of bytes if nobody else waits. Errors are kUnavailable and name the limit.
    [[nodiscard]] base::Status enter(const Load& load);
    // They wait no longer.
    void leave_queue(const Load& load);
    // They are no longer active; true when nothing is. REQUIRES: they do not wait.
    bool leave(std::int64_t num_sequences);

    // Nobody enters once this has returned.
    void close();
    [[nodiscard]] std::int64_t num_active() const;
    // Waits until nothing is active, at most that long. True when all is done. By the machine's
    // clock: it bounds a shutdown, which a clock that stands must not prolong.
    [[nodiscard]] bool wait_idle(std::chrono::milliseconds at_most) const;

  private:
    const Load max_waiting_;
    mutable std::mutex mutex_;
    mutable std::condition_variable idle_;
    Load waiting_;                 // guarded by mutex_
    std::int64_t num_active_ = 0;  // guarded by mutex_
    bool is_closed_ = false;       // guarded by mutex_
};

}  // namespace pagoda::engine
