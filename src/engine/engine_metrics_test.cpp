#include "engine/engine_metrics.h"

#include <gtest/gtest.h>

namespace pagoda::engine {
namespace {

TEST(EngineMetrics, WaitingCountsPreemptedOnesAndTheyHaveAGaugeOfTheirOwn) {
    base::MetricsRegistry registry;
    EngineMetrics metrics(registry, "m", {});
    sched::SchedulerStats stats{.num_waiting = 3, .num_preempted = 2, .num_running = 4};
    stats.num_preemptions = 7;
    metrics.on_step(stats, 1, base::Duration(1));
    const std::string page = registry.render();
    for (const char* line : {"vllm:num_requests_waiting{model_name=\"m\"} 5\n",
                             "pagoda:num_requests_preempted{model_name=\"m\"} 2\n",
                             "vllm:num_requests_running{model_name=\"m\"} 4\n",
                             "vllm:num_preemptions_total{model_name=\"m\"} 7\n"})
        EXPECT_NE(page.find(line), std::string::npos) << line << page;
}

TEST(EngineMetrics, WhatRoutersReadExistsBeforeTheFirstRequest) {
    base::MetricsRegistry registry;
    const EngineMetrics metrics(registry, "m", {.groups = {{.num_blocks = 12}, {7, 100}}});
    const std::string page = registry.render();
    for (const char* part : {"vllm:cache_config_info{", "block_size=\"32\"",
                             "num_gpu_blocks=\"12\"", "vllm:lora_requests_info{", "max_lora=\"0\"",
                             "vllm:spec_decode_num_accepted_tokens_total{model_name=\"m\"} 0\n"})
        EXPECT_NE(page.find(part), std::string::npos) << part;
}

TEST(EngineMetrics, MomentsThatHaveNotComeGiveNoTimes) {
    SequenceTimes times{.submitted = base::TimePoint{}};
    EXPECT_EQ(timings_of(times).queue_ms, 0);
    // The clock's own zero is a moment like any other.
    times.first_step = base::TimePoint{};
    times.first_token = times.last_token = base::TimePoint{} + std::chrono::milliseconds(5);
    EXPECT_EQ(timings_of(times).prefill_ms, 5);
}

}  // namespace
}  // namespace pagoda::engine
