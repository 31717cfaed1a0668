#include "scheduler_load.h"

#include <gtest/gtest.h>

namespace pagoda::apps {
namespace {

sched::SchedulerConfig config_for(const SchedulerLoad& load) {
    return {.max_num_seqs = 16,
            .max_num_batched_tokens = 256,
            .max_queue = load.num_queued,
            .max_model_len = longest_request(load),
            .groups = {{.num_blocks = 64}},
            .prefix_hasher = std::make_shared<const kv::PrefixHasher>(base::HashKey({}))};
}

SchedulerLoad small_load() {
    return {.num_requests = 300,
            .num_queued = 20,
            .prompt_tokens = 80,
            .output_tokens = 30,
            .shared_tokens = 64};
}

TEST(SchedulerLoad, EveryRequestEndsAndRunsAreEqualButForTheirTimes) {
    for (const double rate : {0.0, 20.0}) {
        SchedulerLoad load = small_load();
        load.rate = rate;
        const SchedulerFigures one =
            run_scheduler_load(config_for(load), load, base::system_clock());
        const SchedulerFigures two =
            run_scheduler_load(config_for(load), load, base::system_clock());
        EXPECT_EQ(one.num_steps, two.num_steps);
        EXPECT_EQ(one.simulated, two.simulated);
        EXPECT_EQ(one.stats.num_computed_tokens, two.stats.num_computed_tokens);
        // Means of 80 and 30; the last output is not computed.
        const auto rows =
            static_cast<double>(one.stats.num_computed_tokens + one.stats.num_cached_tokens) / 300;
        EXPECT_GT(rows, 100);
        EXPECT_LT(rows, 140);
        EXPECT_GT(one.stats.num_cached_tokens, 3000U);
        EXPECT_EQ(one.stats.num_running + one.stats.num_waiting + one.stats.num_preempted, 0);
        EXPECT_EQ(std::ssize(one.plans), one.num_steps);
        EXPECT_EQ(std::ssize(one.commits), one.num_steps);
    }
}

TEST(SchedulerLoad, SlowArrivalsTakeAsLongAsTheyTake) {
    SchedulerLoad load = small_load();
    load.rate = 2;
    const SchedulerFigures slow = run_scheduler_load(config_for(load), load, base::system_clock());
    EXPECT_NEAR(std::chrono::duration<double>(slow.simulated).count(), 150, 40);
    EXPECT_TRUE(slow.plans_at_depth.empty());
    load.rate = 0;
    const SchedulerFigures full = run_scheduler_load(config_for(load), load, base::system_clock());
    EXPECT_LT(full.simulated, slow.simulated / 4);
}

}  // namespace
}  // namespace pagoda::apps
