#pragma once
// Time as a dependency, so that tests own it. Implementations are thread-safe.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace pagoda::base {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class Clock {
  public:
    virtual ~Clock() = default;
    [[nodiscard]] virtual TimePoint now() const = 0;
    // Seconds since 1970, for `created` fields and logs.
    [[nodiscard]] virtual std::int64_t unix_seconds() const = 0;
};

// The machine's clocks. The object is immutable and lives for ever.
[[nodiscard]] const Clock& system_clock();

// A clock that moves only when told; one thread advances, any reads.
class FakeClock final : public Clock {
  public:
    [[nodiscard]] TimePoint now() const override {
        return TimePoint(Duration(now_.load(std::memory_order_relaxed)));
    }
    [[nodiscard]] std::int64_t unix_seconds() const override { return 1'700'000'000; }
    void advance(Duration by) { now_.fetch_add(by.count(), std::memory_order_relaxed); }

  private:
    std::atomic<Duration::rep> now_{0};
};

}  // namespace pagoda::base
