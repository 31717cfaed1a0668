#include "sched/step_cost.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "sched/fake_executor_for_test.h"
#include "sched/scheduler.h"

namespace pagoda::sched {
namespace {

// A machine: what its steps take, with noise of so much of it.
class Machine {
  public:
    explicit Machine(double noise) : noise_(1.0 - noise, 1.0 + noise) {}
    double seconds(const StepShape& shape) { return noise_(random_) * exact(shape); }
    static double exact(const StepShape& shape) {
        return 0.020 + 0.001 * static_cast<double>(shape.rows) +
               2e-7 * static_cast<double>(shape.prefill_positions) +
               1e-6 * static_cast<double>(shape.decode_positions);
    }

  private:
    std::mt19937_64 random_{7};
    std::uniform_real_distribution<double> noise_;
};

StepShape decoding(std::int64_t rows, std::int64_t depth) {
    return {.rows = rows, .decode_positions = rows * depth};
}
StepShape with_prefill(StepShape shape, std::int64_t first, std::int64_t tokens) {
    shape.rows += tokens;
    shape.prefill_positions += positions_read(first, tokens);
    return shape;
}

TEST(StepCost, KnowsNothingBeforeAFewSteps) {
    StepCost cost;
    EXPECT_FALSE(cost.is_known());
    for (int i = 0; i < 4; ++i) cost.learn(decoding(1 + i, 100), 0.02);
    EXPECT_TRUE(cost.is_known());
}

TEST(StepCost, PredictsStepsOfAnyKindWithinTheNoise) {
    Machine machine(0.15);
    StepCost cost;
    std::mt19937_64 random(1);
    const auto shape = [&] {
        const auto streams = static_cast<std::int64_t>(random() % 16);
        return with_prefill(decoding(streams, static_cast<std::int64_t>(random() % 4000)),
                            static_cast<std::int64_t>(random() % 8000),
                            static_cast<std::int64_t>(streams == 0 ? 100 : random() % 300));
    };
    for (int i = 0; i < 300; ++i) {
        const StepShape next = shape();
        cost.learn(next, machine.seconds(next));
    }
    for (int i = 0; i < 100; ++i) {
        const StepShape next = shape();
        EXPECT_NEAR(cost.seconds(next) / Machine::exact(next), 1.0, 0.15);
    }
}

TEST(StepCost, WhatRecentStepsSayNothingAboutKeepsItsValue) {
    Machine machine(0.05);
    StepCost cost;
    for (int i = 0; i < 60; ++i) {
        const StepShape next = with_prefill(decoding(i % 7, 1000), i % 5 * 1500, 100 + i % 3 * 50);
        cost.learn(next, machine.seconds(next));
    }
    for (int i = 0; i < 5000; ++i)
        cost.learn(decoding(4, 1000), machine.seconds(decoding(4, 1000)));
    const StepShape next = with_prefill(decoding(4, 1000), 3000, 150);
    EXPECT_NEAR(cost.seconds(next) / Machine::exact(next), 1.0, 0.35);
}

TEST(StepCost, OneStepThatTookFarTooLongChangesLittle) {
    Machine machine(0.0);
    StepCost cost;
    for (int i = 0; i < 100; ++i) {
        const StepShape next = with_prefill(decoding(i % 7, 1000), i % 5 * 1500, i % 3 * 75);
        cost.learn(next, machine.seconds(next));
    }
    cost.learn(decoding(4, 1000), 30);
    EXPECT_LT(cost.seconds(decoding(4, 1000)), 1.3 * Machine::exact(decoding(4, 1000)));
}

TEST(StepCost, GivesTheMostTokensThatFitATime) {
    Machine machine(0.0);
    StepCost cost;
    for (int i = 0; i < 100; ++i) {
        const StepShape next = with_prefill(decoding(i % 7, 1000), i % 5 * 1500, 100 + i % 3 * 50);
        cost.learn(next, machine.seconds(next));
    }
    for (const std::int64_t first : {0, 1000, 8000}) {
        const std::int64_t tokens = cost.prefill_tokens(0.1, first, 512);
        EXPECT_LE(cost.prefill_seconds(first, tokens), 0.1);
        EXPECT_GT(cost.prefill_seconds(first, tokens + 1), 0.1);
    }
    EXPECT_EQ(cost.prefill_tokens(100, 0, 512), 512);
    EXPECT_EQ(cost.prefill_tokens(-1, 0, 512), 0);
}

// Streams that decode while a long prompt comes.
struct LongPromptBeside {
    double largest_gap = 0;     // of the streams, while the prompt is computed
    double prompt_seconds = 0;  // until its first token
    double alone_seconds = 0;   // what its steps would take without the streams
};

StepShape shape_of(const StepPlan& plan) {
    StepShape shape;
    for (const SequencePlan& part : plan.sequences) {
        shape.rows += part.num_tokens;
        (part.num_tokens == 1 ? shape.decode_positions : shape.prefill_positions) +=
            positions_read(part.first_position, part.num_tokens);
    }
    return shape;
}

class Simulation {
  public:
    Simulation(const SchedulerConfig& config, double noise)
        : scheduler_(config), executor_(config), machine_(noise) {}

    void submit(std::uint64_t id, std::int64_t prompt, std::int64_t outputs) {
        const SequenceSpec spec{.seq = base::SeqId(id),
                                .num_prompt_tokens = prompt,
                                .max_total_tokens = prompt + outputs};
        ASSERT_TRUE(scheduler_.submit({&spec, 1}, {}).ok());
        executor_.add(spec, outputs);
    }
    struct Step {
        StepPlan plan;
        double seconds;
    };
    Step step() {
        StepPlan plan = scheduler_.plan();
        StepResult result = executor_.run(plan);
        const double seconds = machine_.seconds(shape_of(plan));
        result.took = std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9));
        scheduler_.commit(plan, result);
        return {std::move(plan), seconds};
    }

  private:
    Scheduler scheduler_;
    FakeExecutor executor_;
    Machine machine_;
};

LongPromptBeside long_prompt_beside(std::int64_t streams, std::int64_t prompt, double target) {
    SchedulerConfig config;
    config.max_model_len = 20'000;
    config.groups.push_back({4000, 0});
    config.target_itl = std::chrono::nanoseconds(static_cast<std::int64_t>(target * 1e9));
    Simulation simulation(config, 0.1);
    for (std::int64_t id = 1; id <= streams; ++id)
        simulation.submit(static_cast<std::uint64_t>(id), 700, 2000);
    for (int i = 0; i < 30; ++i) simulation.step();
    simulation.submit(1000, prompt, 10);
    LongPromptBeside result;
    for (std::int64_t computed = 0; computed < prompt;) {
        const Simulation::Step step = simulation.step();
        EXPECT_EQ(std::ssize(step.plan.sequences), streams + 1);
        const SequencePlan& part = step.plan.sequences.back();
        result.largest_gap = std::max(result.largest_gap, step.seconds);
        result.prompt_seconds += step.seconds;
        computed = part.first_position + part.num_tokens;
    }
    for (std::int64_t first = 0; first < prompt; first += 512)
        result.alone_seconds +=
            Machine::exact(with_prefill({}, first, std::min<std::int64_t>(512, prompt - first)));
    return result;
}

TEST(TargetItl, ALongPromptMakesNoStreamWaitMuchLongerThanTheTarget) {
    for (const double target : {0.1, 0.2, 0.4}) {
        const LongPromptBeside result = long_prompt_beside(8, 12'000, target);
        const double decode = Machine::exact(decoding(8, 1000));
        EXPECT_LE(result.largest_gap, 1.5 * std::max(target, 4 * decode)) << target;
    }
    // Without one, as long as 512 tokens take.
    EXPECT_GT(long_prompt_beside(8, 12'000, 0).largest_gap, 0.6);
}

TEST(TargetItl, ALongPromptKeepsMostOfItsSpeed) {
    const LongPromptBeside result = long_prompt_beside(8, 8'000, 0.4);
    EXPECT_LE(result.prompt_seconds, result.alone_seconds / 0.8);
}

TEST(TargetItl, APromptAloneIsNotCut) {
    const LongPromptBeside result = long_prompt_beside(0, 5'120, 0.001);
    EXPECT_NEAR(result.prompt_seconds / result.alone_seconds, 1.0, 0.1);
}

TEST(TargetItl, ATargetThatCannotBeMetStillLetsPromptsThrough) {
    EXPECT_GT(long_prompt_beside(1, 2'000, 1e-6).prompt_seconds, 0);
}

}  // namespace
}  // namespace pagoda::sched
