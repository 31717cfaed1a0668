#include "base/wait_word.h"

#include <climits>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pagoda::base {
namespace {

// Polls between two looks at the clock: about a microsecond.
constexpr int kPollsPerClockRead = 32;

void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
}

// The kernel wants the address of a plain word, which a lock-free atomic of 32 bits is.
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t) &&
              std::atomic<std::uint32_t>::is_always_lock_free);

void futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) noexcept {
    syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

}  // namespace

// A sleeper counts itself and then looks at the word; advance() changes the word and then looks at
// the count. Both orders are sequentially consistent, so at least one of them sees the other.
void WaitWord::advance() noexcept {
    value_.fetch_add(1, std::memory_order_seq_cst);
    if (num_sleepers_.load(std::memory_order_seq_cst) == 0) return;
    futex(value_, FUTEX_WAKE_PRIVATE, INT_MAX);
}

void WaitWord::wait_while(std::uint32_t old, std::chrono::nanoseconds spin) noexcept {
    if (spin_while(old, spin)) return;
    num_sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (value_.load(std::memory_order_seq_cst) == old) {
        // Returns at once if the word changed meanwhile; signals and strays just loop.
        futex(value_, FUTEX_WAIT_PRIVATE, old);
    }
    num_sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

// True when the word changed within the time.
bool WaitWord::spin_while(std::uint32_t old, std::chrono::nanoseconds spin) const noexcept {
    if (value() != old) return true;
    if (spin.count() == 0) return false;
    const auto deadline = std::chrono::steady_clock::now() + spin;
    do {
        for (int poll = 0; poll < kPollsPerClockRead; ++poll) {
            if (value() != old) return true;
            relax();
        }
    } while (std::chrono::steady_clock::now() < deadline);
    return false;
}

}  // namespace pagoda::base
