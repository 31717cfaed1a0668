#include "sched/scheduler.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "sched/fake_executor_for_test.h"

namespace pagoda::sched {
namespace {

using base::ErrorCode;
using base::SeqId;

SchedulerConfig small_config() {
    SchedulerConfig config;
    config.max_num_seqs = 4;
    config.max_num_batched_tokens = 64;
    config.max_queue = 8;
    config.max_model_len = 1024;
    config.policy = PolicyKind::kFcfs;
    config.groups = {{.num_blocks = 16, .window = 0}};
    return config;
}

SequenceSpec spec(std::uint64_t id, std::int64_t prompt, std::int64_t total) {
    SequenceSpec spec;
    spec.seq = SeqId(id);
    spec.num_prompt_tokens = prompt;
    spec.max_total_tokens = total;
    return spec;
}

base::Status submit(Scheduler& scheduler, const std::vector<SequenceSpec>& specs) {
    return scheduler.submit(specs, {});
}

TEST(Scheduler, RefusesWhatCanNeverFitAndNamesBothNumbers) {
    Scheduler scheduler(small_config());
    const base::Status too_long = submit(scheduler, {spec(1, 10, 1025)});
    EXPECT_EQ(too_long.error().code, ErrorCode::kResourceExhausted);
    EXPECT_NE(too_long.error().message.find("1025"), std::string::npos);
    EXPECT_NE(too_long.error().message.find("1024"), std::string::npos);
    // 16 blocks hold 512 positions; the last output needs none.
    EXPECT_TRUE(submit(scheduler, {spec(2, 500, 513)}).ok());
    const base::Status too_big = submit(scheduler, {spec(3, 500, 514)});
    EXPECT_EQ(too_big.error().code, ErrorCode::kResourceExhausted);
    EXPECT_NE(too_big.error().message.find("17 KV blocks"), std::string::npos);
    EXPECT_NE(too_big.error().message.find("16"), std::string::npos);
}

TEST(Scheduler, AFullQueueIsUnavailableAndARequestIsTakenWholeOrNotAtAll) {
    Scheduler scheduler(small_config());
    std::vector<SequenceSpec> five;
    for (std::uint64_t i = 0; i < 5; ++i) five.push_back(spec(i, 4, 8));
    EXPECT_TRUE(submit(scheduler, five).ok());
    for (SequenceSpec& s : five) s.seq.value += 10;
    EXPECT_EQ(submit(scheduler, five).error().code, ErrorCode::kUnavailable);
    EXPECT_EQ(scheduler.stats().num_waiting, 5);
    five.back().max_total_tokens = 99999;
    five.resize(3);
    five[1].max_total_tokens = 99999;
    EXPECT_EQ(submit(scheduler, five).error().code, ErrorCode::kResourceExhausted);
    EXPECT_EQ(scheduler.stats().num_waiting, 5);
    std::vector<SequenceSpec> nine;
    for (std::uint64_t i = 100; i < 109; ++i) nine.push_back(spec(i, 4, 8));
    EXPECT_EQ(submit(scheduler, nine).error().code, ErrorCode::kResourceExhausted);
}

// A scheduler that has seen short outputs alone.
void learn_short_outputs(Scheduler& scheduler, FakeExecutor& executor) {
    for (std::uint64_t id = 1000; id < 1020; ++id) {
        executor.add(spec(id, 4, 484), 4);
        ASSERT_TRUE(submit(scheduler, {spec(id, 4, 484)}).ok());
        for (int step = 0; step < 4; ++step) {
            const StepPlan plan = scheduler.plan();
            scheduler.commit(plan, executor.run(plan));
        }
    }
}

// Two whose long outputs surprise, in blocks for one and a half, until one of them was preempted.
void run_until_preempted(Scheduler& scheduler, FakeExecutor& executor) {
    learn_short_outputs(scheduler, executor);
    const std::vector<SequenceSpec> specs{spec(1, 200, 500), spec(2, 200, 500)};
    for (const SequenceSpec& s : specs) executor.add(s, 300);
    ASSERT_TRUE(submit(scheduler, specs).ok());
    for (int step = 0; scheduler.stats().num_preempted == 0; ++step) {
        ASSERT_LT(step, 500) << "nobody was preempted";
        const StepPlan plan = scheduler.plan();
        scheduler.commit(plan, executor.run(plan));
    }
}

TEST(Scheduler, PreemptedOnesWaitButTakeNoPlaceInTheQueue) {
    SchedulerConfig config = small_config();
    config.max_queue = 2;
    Scheduler scheduler(config);
    FakeExecutor executor(config);
    run_until_preempted(scheduler, executor);
    EXPECT_EQ(scheduler.stats().num_waiting, 0);
    EXPECT_EQ(scheduler.stats().num_running, 1);
    EXPECT_TRUE(submit(scheduler, {spec(3, 4, 8), spec(4, 4, 8)}).ok());
    EXPECT_EQ(scheduler.stats().num_waiting, 2);
    EXPECT_EQ(scheduler.stats().num_preempted, 1);
    EXPECT_EQ(submit(scheduler, {spec(5, 4, 8)}).error().code, ErrorCode::kUnavailable);
    for (const std::uint64_t id : {1U, 2U, 3U, 4U}) {
        scheduler.cancel(SeqId(id));
        scheduler.check_invariants();
    }
    EXPECT_TRUE(submit(scheduler, {spec(6, 4, 8), spec(7, 4, 8)}).ok());
}

// How many of eight sequences, which may get 480 outputs, start at once.
std::int64_t num_started(Scheduler& scheduler, FakeExecutor& executor) {
    std::vector<SequenceSpec> specs;
    for (std::uint64_t id = 100; id < 108; ++id) specs.push_back(spec(id, 4, 484));
    for (const SequenceSpec& s : specs) executor.add(s, 480);
    EXPECT_TRUE(submit(scheduler, specs).ok());
    const StepPlan plan = scheduler.plan();
    scheduler.commit(plan, executor.run(plan));
    return scheduler.stats().num_running;
}

TEST(Scheduler, TheForecastLearnsFromOutputsThatAStopStringEnds) {
    SchedulerConfig config = small_config();
    config.max_num_seqs = 8;
    for (const bool is_finished : {false, true}) {
        Scheduler scheduler(config);
        FakeExecutor executor(config);
        for (std::uint64_t id = 0; id < 20; ++id) {
            executor.add(spec(id, 4, 484), 480);
            ASSERT_TRUE(submit(scheduler, {spec(id, 4, 484)}).ok());
            for (int step = 0; step < 5; ++step) {
                const StepPlan plan = scheduler.plan();
                scheduler.commit(plan, executor.run(plan));
            }
            is_finished ? scheduler.finish(SeqId(id)) : scheduler.cancel(SeqId(id));
            scheduler.check_invariants();
        }
        scheduler.finish(SeqId(3));  // gone: ignored
        EXPECT_EQ(num_started(scheduler, executor), is_finished ? 8 : 1);
    }
}

TEST(Scheduler, PlanNeverMutates) {
    Scheduler scheduler(small_config());
    ASSERT_TRUE(submit(scheduler, {spec(1, 100, 120), spec(2, 30, 40)}).ok());
    const StepPlan first = scheduler.plan();
    const StepPlan again = scheduler.plan();
    ASSERT_EQ(first.sequences.size(), again.sequences.size());
    for (std::size_t i = 0; i < first.sequences.size(); ++i) {
        EXPECT_EQ(first.sequences[i].new_blocks, again.sequences[i].new_blocks);
    }
    EXPECT_EQ(scheduler.stats().num_blocks_used, 0);
    EXPECT_EQ(scheduler.stats().num_waiting, 2);
}

TEST(Scheduler, CancelGivesBackAtOnceInEveryState) {
    const SchedulerConfig config = small_config();
    Scheduler scheduler(config);
    FakeExecutor executor(config);
    const std::vector<SequenceSpec> specs{spec(1, 10, 60), spec(2, 300, 320), spec(3, 400, 420)};
    for (const SequenceSpec& s : specs) executor.add(s, 20);
    ASSERT_TRUE(submit(scheduler, specs).ok());
    for (int i = 0; i < 3; ++i) {
        const StepPlan plan = scheduler.plan();
        scheduler.commit(plan, executor.run(plan));
    }
    EXPECT_GT(scheduler.stats().num_blocks_used, 0);
    for (const std::uint64_t id :
         {2U, 3U, 1U, 1U, 77U}) {  // prefilling, waiting, decoding, unknown
        scheduler.cancel(SeqId(id));
        scheduler.check_invariants();
    }
    EXPECT_EQ(scheduler.stats().num_blocks_used, 0);
    EXPECT_EQ(scheduler.stats().num_running + scheduler.stats().num_waiting, 0);
    ASSERT_TRUE(scheduler.has_work());
    const StepPlan plan = scheduler.plan();
    EXPECT_EQ(plan.ended, (std::vector<SeqId>{SeqId(2), SeqId(3), SeqId(1)}));
    EXPECT_TRUE(plan.sequences.empty());
    scheduler.commit(plan, executor.run(plan));
    EXPECT_FALSE(scheduler.has_work());
    EXPECT_TRUE(scheduler.plan().empty());
}

TEST(Scheduler, AFirstTokenThatEndsTheSequenceIsAnOrdinaryEnd) {
    const SchedulerConfig config = small_config();
    Scheduler scheduler(config);
    FakeExecutor executor(config);
    executor.add(spec(1, 10, 60), 1);
    ASSERT_TRUE(submit(scheduler, {spec(1, 10, 60)}).ok());
    StepPlan plan = scheduler.plan();
    scheduler.commit(plan, executor.run(plan));
    EXPECT_EQ(scheduler.stats().num_blocks_used, 0);
    plan = scheduler.plan();
    EXPECT_EQ(plan.ended, std::vector<SeqId>{SeqId(1)});
    EXPECT_TRUE(plan.sequences.empty());
}

TEST(Scheduler, AnErrorEndsOneSequenceInMidPromptAndNoOther) {
    const SchedulerConfig config = small_config();
    Scheduler scheduler(config);
    FakeExecutor executor(config);
    const std::vector<SequenceSpec> specs{spec(1, 100, 110), spec(2, 10, 20)};
    for (const SequenceSpec& s : specs) executor.add(s, 5);
    ASSERT_TRUE(submit(scheduler, specs).ok());
    const StepPlan plan = scheduler.plan();
    StepResult result = executor.run(plan);
    ASSERT_EQ(result.sequences[0].seq, SeqId(1));
    result.sequences[0].finish = FinishReason::kError;
    scheduler.commit(plan, result);
    scheduler.check_invariants();
    EXPECT_EQ(scheduler.stats().num_running + scheduler.stats().num_waiting, 1);
}

TEST(Scheduler, ConfigurationsThatCannotWorkAreRefusedByName) {
    SchedulerConfig config = small_config();
    EXPECT_TRUE(validate(config).ok());
    config.max_num_batched_tokens = 3;
    EXPECT_NE(validate(config).error().message.find("max_num_seqs (4)"), std::string::npos);
    config = small_config();
    config.groups.clear();
    EXPECT_FALSE(validate(config).ok());
    config = small_config();
    config.max_queue = 0;
    EXPECT_EQ(validate(config).error().message, "max_queue must be at least 1, got 0");
}

TEST(Scheduler, PoliciesGoByTheirNames) {
    for (const char* name : {"fcfs", "priority", "fair"}) {
        EXPECT_EQ(policy_name(parse_policy(name).value()), name);
    }
    EXPECT_EQ(parse_policy("lifo").error().message,
              "scheduling_policy must be one of fcfs, priority, fair, got \"lifo\"");
}

}  // namespace
}  // namespace pagoda::sched
