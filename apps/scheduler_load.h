#pragma once
// A scheduler under load without a model: requests that arrive, an executor that only says how long
// a step would take, and how long the scheduler itself took. Arrivals, lengths and tokens come from
// a seed, so that steps and tokens are the same in every run; only the measured times differ.

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "sched/scheduler.h"

namespace pagoda::apps {

struct SchedulerLoad {
    std::int64_t num_requests = 20'000;
    std::int64_t num_queued = 10'000;  // that wait for their first step, at most
    double rate = 0;                   // arrivals in a second of the simulation; 0: the queue is
                                       // kept full
    std::int64_t prompt_tokens = 256;  // mean; uniform from half to one and a half of it
    std::int64_t output_tokens = 128;  // the same
    std::int64_t shared_tokens = 128;  // of a prompt, that one of 16 applications gives to all
    std::int64_t num_clients = 64;
    unsigned seed = 1;
    // What a step costs in the simulation.
    base::Duration step_time = std::chrono::milliseconds(5);
    base::Duration token_time = std::chrono::microseconds(20);
};

struct SchedulerFigures {
    std::int64_t num_steps = 0;
    base::Duration simulated{};
    // The scheduler's own time: of each plan and commit, and of all submissions.
    std::vector<base::Duration> plans, commits;
    base::Duration submits{};
    // Of the plans, those made with nine tenths at least of as many as may run, and of as many as
    // wait at most.
    std::vector<base::Duration> plans_at_depth;
    double mean_running = 0;
    sched::SchedulerStats stats;
};

// Runs every request to its end. REQUIRES: config is valid, max_queue is num_queued at least, and
// a request at its longest fits (longest_request).
[[nodiscard]] SchedulerFigures run_scheduler_load(const sched::SchedulerConfig& config,
                                                  const SchedulerLoad& load,
                                                  const base::Clock& clock);
// Tokens of a request at its limit.
[[nodiscard]] std::int64_t longest_request(const SchedulerLoad& load);

}  // namespace pagoda::apps
