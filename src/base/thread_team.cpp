#include "base/thread_team.h"

#include <chrono>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <pthread.h>
#include <sched.h>

#include "base/check.h"
#include "base/cpu_topology.h"
#include "base/thread.h"
#include "base/wait_word.h"

namespace pagoda::base {
namespace {

// Long enough to bridge the gaps between the kernels of a step, short enough that a thread which
// waits for one that lost its processor gives its own away.
constexpr std::chrono::microseconds kSpin{30};

// How the threads of a team use the processors.
struct Placement {
    std::chrono::nanoseconds spin{0};
    std::vector<int> processors = {};  // one for each thread; empty: left to the system
};

Placement place(int num_threads) {
    const std::vector<int> cpus = allowed_cpus();
    const std::vector<int> cores = one_cpu_per_core(cpus, "");
    const auto usable = static_cast<std::size_t>(usable_cores(cpus, ""));
    const bool is_throttled = usable < cores.size();
    const auto wanted = static_cast<std::size_t>(num_threads);
    Placement placement;
    // With more threads than processors, spinning would hold up the very thread waited for.
    if (wanted <= (is_throttled ? usable : cpus.size())) placement.spin = kSpin;
    // Threads are bound only where the team fills all that the process may use. Elsewhere the
    // system knows better which processors are free, and two processes that both chose the first
    // few would share them.
    if (is_throttled) return placement;
    if (wanted == cores.size()) placement.processors = cores;
    if (wanted == cpus.size()) placement.processors = cpus;
    return placement;
}

// A refusal leaves the thread free to move, which is slower and nothing else.
bool bind_to(std::thread& thread, int cpu) {
    const std::size_t mask_bytes = CPU_ALLOC_SIZE(cpu + 1);
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> mask(
        CPU_ALLOC(cpu + 1), [](cpu_set_t* set) { CPU_FREE(set); });
    if (mask == nullptr) return false;
    CPU_ZERO_S(mask_bytes, mask.get());
    CPU_SET_S(cpu, mask_bytes, mask.get());
    return pthread_setaffinity_np(thread.native_handle(), mask_bytes, mask.get()) == 0;
}

}  // namespace

struct ThreadTeam::Impl {
    // Starts a job: workers wait for the next generation.
    WaitWord generation;
    // Ends a job: the last worker to finish advances it.
    WaitWord finished;
    alignas(64) std::atomic<int> num_working{0};
    std::atomic<bool> running{false};

    // Written by run_erased() before the generation advances, read by workers after it.
    ErasedJob job = nullptr;
    const void* context = nullptr;
    bool stopping = false;

    std::chrono::nanoseconds spin{0};
    bool bound = false;
    std::vector<std::thread> workers;

    void work(int thread) noexcept {
        std::uint32_t seen = 0;
        while (true) {
            generation.wait_while(seen, spin);
            ++seen;
            if (stopping) return;
            job(context, thread);
            if (num_working.fetch_sub(1, std::memory_order_acq_rel) == 1) finished.advance();
        }
    }

    Impl() = default;
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl() {
        CHECK(!running.load(), "a thread team is destroyed while it runs a job");
        stopping = true;
        generation.advance();
        for (std::thread& worker : workers) worker.join();
    }

    [[nodiscard]] Status start(int num_threads) {
        if (num_threads == 1) return {};
        const Placement placement = place(num_threads);
        const std::vector<int>& processors = placement.processors;
        spin = placement.spin;
        bound = !processors.empty();
        workers.reserve(static_cast<std::size_t>(num_threads - 1));
        for (int thread = 1; thread < num_threads; ++thread) {
            auto worker = start_thread("pagoda-compute", [this, thread] { work(thread); });
            if (!worker) {
                return Error{worker.error().code,
                             fmt::format("threads is {}, the system allows {}: {}", num_threads,
                                         thread, worker.error().message),
                             "threads"};
            }
            workers.push_back(std::move(worker).value());
            // Thread 0 is the caller's and stays as it is, beside the workers.
            if (!bound) continue;
            bound = bind_to(workers.back(), processors[static_cast<std::size_t>(thread)]);
        }
        return {};
    }
};

ThreadTeam::ThreadTeam(int num_threads, std::unique_ptr<Impl> impl)
    : num_threads_(num_threads),
      next_items_(std::make_unique<NextItem[]>(static_cast<std::size_t>(num_threads))),
      impl_(std::move(impl)) {}

ThreadTeam::ThreadTeam(int num_threads) : ThreadTeam(num_threads, std::make_unique<Impl>()) {
    CHECK(num_threads >= 1, "a thread team has at least one thread");
    const Status started = impl_->start(num_threads);
    CHECK(started.ok(), started.error().message);
}

ThreadTeam::~ThreadTeam() = default;

bool ThreadTeam::is_bound() const {
    return impl_->bound;
}

Result<std::unique_ptr<ThreadTeam>> ThreadTeam::start(int num_threads) {
    CHECK(num_threads >= 1, "a thread team has at least one thread");
    auto impl = std::make_unique<Impl>();
    if (auto started = impl->start(num_threads); !started) return std::move(started).error();
    return std::unique_ptr<ThreadTeam>(new ThreadTeam(num_threads, std::move(impl)));
}

void ThreadTeam::run_erased(ErasedJob job, const void* context) noexcept {
    CHECK(!impl_->running.exchange(true, std::memory_order_acquire),
          "a thread team runs one job at a time, and no job from inside a job");
    if (num_threads_ > 1) {
        impl_->job = job;
        impl_->context = context;
        impl_->num_working.store(num_threads_ - 1, std::memory_order_relaxed);
        const std::uint32_t before = impl_->finished.value();
        impl_->generation.advance();
        job(context, 0);
        impl_->finished.wait_while(before, impl_->spin);
    } else {
        job(context, 0);
    }
    impl_->running.store(false, std::memory_order_release);
}

int ThreadTeam::allowed_cores() {
    return usable_cores(allowed_cpus(), "");
}

}  // namespace pagoda::base
