#pragma once
// Asking for memory ahead of its use, on x86. In assembly: g++ 12 drops calls of a function that
// does nothing but _mm_prefetch. An address that doesn't exist is no error.

#include <cstddef>
#include <cstdint>

namespace pagoda::kernels {
namespace {

// Into L2: a stream from memory, some microseconds ahead.
[[gnu::always_inline]] inline void fetch_far(const void* address) {
    asm volatile("prefetcht1 %0" : : "m"(*static_cast<const std::byte*>(address)));
}
// Into L1, from L2.
[[gnu::always_inline]] inline void fetch_near(const void* address) {
    asm volatile("prefetcht0 %0" : : "m"(*static_cast<const std::byte*>(address)));
}
// For writing: the line is this core's own when the store comes.
[[gnu::always_inline]] inline void fetch_to_write(const void* address) {
    asm volatile("prefetchw %0" : : "m"(*static_cast<const std::byte*>(address)));
}

// The packed bytes that are asked for while others are multiplied, `step` at a time.
struct Ahead {
    const std::byte* next;
    const std::byte* until;
    std::int64_t step;

    [[gnu::always_inline]] void advance() {
        until += step;
        for (; next < until; next += 64) fetch_far(next);
    }
};

}  // namespace
}  // namespace pagoda::kernels
