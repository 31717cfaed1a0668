#pragma once
// Hand-over between threads: a bounded or unbounded queue of values. Any thread may call anything.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

namespace pagoda::base {

template <class T>
class BlockingQueue {
  public:
    explicit BlockingQueue(std::size_t max_size = std::numeric_limits<std::size_t>::max())
        : max_size_(max_size) {}

    // False when full or closed; the value is then untouched.
    [[nodiscard]] bool try_push(T&& value) {
        {
            const std::lock_guard lock(mutex_);
            if (is_closed_ || values_.size() >= max_size_) return false;
            values_.push_back(std::move(value));
        }
        ready_.notify_one();
        return true;
    }

    // Waits for a value; empty when closed and drained.
    [[nodiscard]] std::optional<T> pop() {
        std::unique_lock lock(mutex_);
        ready_.wait(lock, [this] { return is_closed_ || !values_.empty(); });
        return take();
    }

    // Takes a value if there is one.
    [[nodiscard]] std::optional<T> try_pop() {
        const std::lock_guard lock(mutex_);
        return take();
    }

    // Everything that is queued, at once, without waiting.
    [[nodiscard]] std::deque<T> drain() {
        const std::lock_guard lock(mutex_);
        return std::exchange(values_, {});
    }

    // Waits until there is a value or the queue is closed.
    void wait() {
        std::unique_lock lock(mutex_);
        ready_.wait(lock, [this] { return is_closed_ || !values_.empty(); });
    }

    // Wakes every waiter; later pushes fail, queued values can still be taken.
    void close() {
        {
            const std::lock_guard lock(mutex_);
            is_closed_ = true;
        }
        ready_.notify_all();
    }

    [[nodiscard]] bool is_closed() const {
        const std::lock_guard lock(mutex_);
        return is_closed_;
    }
    [[nodiscard]] std::size_t size() const {
        const std::lock_guard lock(mutex_);
        return values_.size();
    }

  private:
    // REQUIRES: mutex_ held.
    std::optional<T> take() {
        if (values_.empty()) return std::nullopt;
        std::optional<T> value(std::move(values_.front()));
        values_.pop_front();
        return value;
    }

    const std::size_t max_size_;
    mutable std::mutex mutex_;
    std::condition_variable ready_;
    std::deque<T> values_;    // guarded by mutex_
    bool is_closed_ = false;  // guarded by mutex_
};

}  // namespace pagoda::base
