#pragma once
// ThreadTeam: the compute threads of one engine. run() starts one job on all of them, the caller
// being thread 0, and returns when all are done. Owned by the engine thread, which alone calls
// run(); jobs must not throw. Waiting spins for tens of microseconds, then sleeps on a futex, so
// that an idle team costs nothing and a busy machine loses no time slices.

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/result.h"

namespace pagoda::base {

class ThreadTeam {
  public:
    // A team of num_threads >= 1, the caller included. Fails when the system allows fewer; those
    // that were started are ended again.
    [[nodiscard]] static Result<std::unique_ptr<ThreadTeam>> start(int num_threads);
    // As start(), for a number that can't be refused; aborts when it is.
    explicit ThreadTeam(int num_threads);
    ~ThreadTeam();
    ThreadTeam(const ThreadTeam&) = delete;
    ThreadTeam& operator=(const ThreadTeam&) = delete;

    [[nodiscard]] int num_threads() const { return num_threads_; }
    // Whether each thread but the caller's is bound to a processor of its own: where the team fills
    // all that the process may use. Elsewhere the system places them.
    [[nodiscard]] bool is_bound() const;

    // Calls job(thread_index) once on every thread, 0 <= thread_index < num_threads().
    template <class Job>
    void run(const Job& job) {
        run_erased(
            [](const void* context, int thread) { (*static_cast<const Job*>(context))(thread); },
            &job);
    }

    // Calls body(item) for 0 <= item < num_items. Every thread owns an equal run of them, the same
    // one each time, so that what an item reads and writes stays in its core's caches; who is done
    // helps the next. Which thread runs an item must not change its result.
    template <class Body>
    void for_each(std::int64_t num_items, const Body& body) {
        if (num_items <= 1 || num_threads_ == 1) {
            for (std::int64_t item = 0; item < num_items; ++item) body(item);
            return;
        }
        const auto begin_of = [&](int thread) { return num_items * thread / num_threads_; };
        for (int thread = 0; thread < num_threads_; ++thread)
            next_items_[thread].value.store(begin_of(thread), std::memory_order_relaxed);
        run([&](int thread) {
            for (int turn = 0; turn < num_threads_; ++turn) {
                const int owner = (thread + turn) % num_threads_;
                std::atomic<std::int64_t>& next = next_items_[owner].value;
                const std::int64_t end = begin_of(owner + 1);
                for (std::int64_t item;
                     (item = next.fetch_add(1, std::memory_order_relaxed)) < end;)
                    body(item);
            }
        });
    }

    // Physical cores this process may use: the smaller of affinity (one per core) and the floor of
    // the cgroup quota (v1 and v2, parent groups too), at least 1.
    [[nodiscard]] static int allowed_cores();

  private:
    struct Impl;
    ThreadTeam(int num_threads, std::unique_ptr<Impl> impl);
    using ErasedJob = void (*)(const void* context, int thread);
    void run_erased(ErasedJob job, const void* context) noexcept;
    const int num_threads_;
    struct alignas(64) NextItem {
        std::atomic<std::int64_t> value{0};
    };
    std::unique_ptr<NextItem[]> next_items_;  // by owner; of the for_each() under way
    std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda::base
