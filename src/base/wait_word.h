#pragma once
// A 32-bit word on which threads wait for a change: first spinning, then asleep in the kernel
// (futex). Any thread may call anything; the word must outlive every call.

#include <atomic>
#include <chrono>
#include <cstdint>

namespace pagoda::base {

class WaitWord {
  public:
    [[nodiscard]] std::uint32_t value() const noexcept {
        return value_.load(std::memory_order_acquire);
    }
    // Changes the word and wakes all who wait. What was written before is visible to them.
    void advance() noexcept;
    // Returns when the word no longer is `old`; spins for about `spin` before it sleeps.
    void wait_while(std::uint32_t old, std::chrono::nanoseconds spin) noexcept;

  private:
    [[nodiscard]] bool spin_while(std::uint32_t old, std::chrono::nanoseconds spin) const noexcept;

    // On a cache line of its own, since waiting threads hammer it.
    alignas(64) std::atomic<std::uint32_t> value_{0};
    std::atomic<std::uint32_t> num_sleepers_{0};
};

}  // namespace pagoda::base
