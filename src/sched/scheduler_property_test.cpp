// Random operation sequences against the fake executor, which keeps its own books, with every
// invariant checked after every step. The seed is in the failure's trace.

#include <random>
#include <unordered_map>

#include <gtest/gtest.h>

#include "sched/fake_executor_for_test.h"
#include "sched/sequence.h"

namespace pagoda::sched {
namespace {

using base::SeqId;

class Load {
  public:
    explicit Load(SchedulerConfig config)
        : config_(std::move(config)), scheduler_(config_), executor_(config_) {}

    Scheduler& scheduler() { return scheduler_; }
    [[nodiscard]] std::int64_t num_unfinished() const { return std::ssize(outputs_); }
    [[nodiscard]] std::int64_t num_finished() const { return num_finished_; }

    bool submit(const SequenceSpec& spec, std::int64_t num_outputs) {
        if (!scheduler_.submit({&spec, 1}, now_).ok()) return false;
        executor_.add(spec, num_outputs);
        outputs_[spec.seq] = std::min(num_outputs, spec.max_total_tokens - spec.num_prompt_tokens);
        return true;
    }

    void cancel(SeqId seq) {
        scheduler_.cancel(seq);
        outputs_.erase(seq);
    }

    // One step; a sequence that ends must have all its outputs.
    StepPlan step() {
        const StepPlan plan = scheduler_.plan();
        EXPECT_EQ(plan.sequences.empty(), outputs_.empty()) << "a step without progress";
        const StepResult result = executor_.run(plan);
        for (const SequenceResult& part : result.sequences) {
            if (!part.finish) continue;
            EXPECT_EQ(executor_.num_outputs(part.seq), outputs_.at(part.seq));
            outputs_.erase(part.seq);
            ++num_finished_;
        }
        scheduler_.commit(plan, result);
        scheduler_.check_invariants();
        now_ += std::chrono::milliseconds(20);
        return plan;
    }

    void drain(std::int64_t max_steps) {
        while (scheduler_.has_work()) {
            ASSERT_GT(max_steps--, 0) << "the load does not drain";
            step();
        }
        EXPECT_EQ(scheduler_.stats().num_blocks_used, 0);
        EXPECT_EQ(executor_.num_known(), 0);
    }

    [[nodiscard]] double recomputed_share() const {
        const SchedulerStats stats = scheduler_.stats();
        return static_cast<double>(stats.num_recomputed_tokens) /
               static_cast<double>(std::max<std::uint64_t>(stats.num_computed_tokens, 1));
    }

  private:
    SchedulerConfig config_;
    Scheduler scheduler_;
    FakeExecutor executor_;
    base::TimePoint now_{};
    std::unordered_map<SeqId, std::int64_t> outputs_;  // of unfinished sequences
    std::int64_t num_finished_ = 0;
};

SequenceSpec spec(std::uint64_t id, std::int64_t prompt, std::int64_t total) {
    SequenceSpec spec;
    spec.seq = SeqId(id);
    spec.client = base::ClientId(id % 5);
    spec.num_prompt_tokens = prompt;
    spec.max_total_tokens = total;
    return spec;
}

std::int64_t below(std::mt19937& random, std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
}

SchedulerConfig random_config(std::mt19937& random) {
    SchedulerConfig config;
    config.max_num_seqs = 1 + random() % 12;
    config.max_num_batched_tokens = config.max_num_seqs + random() % 200;
    config.max_queue = 1000;
    config.max_model_len = 2000;
    config.policy =
        std::array{PolicyKind::kFcfs, PolicyKind::kPriority, PolicyKind::kFair}[random() % 3];
    config.groups = {{.num_blocks = 8 + below(random, 30), .window = 0}};
    for (std::size_t more = random() % 3; more > 0; --more) {
        const std::int64_t window = 1 + random() % 150;
        const std::int64_t least = blocks_to_advance(2000, window);
        config.groups.push_back({.num_blocks = least + below(random, 12), .window = window});
    }
    return config;
}

void run_random_load(unsigned seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const SchedulerConfig config = random_config(random);
    Load load(config);
    const std::int64_t capacity = config.groups[0].num_blocks * kv::kBlockTokens;
    std::uint64_t next_id = 0;
    for (int step = 0; step < 300; ++step) {
        while (random() % 3 == 0) {
            const std::int64_t prompt = 1 + random() % (random() % 4 == 0 ? capacity : 60);
            SequenceSpec next = spec(next_id++, prompt, prompt + 1 + random() % 120);
            next.priority = static_cast<std::int32_t>(random() % 4);
            if (random() % 8 == 0) next.max_step_tokens = 1 + random() % 20;
            load.submit(next, 1 + random() % 120);
        }
        if (random() % 6 == 0 && next_id > 0) load.cancel(SeqId(random() % next_id));
        load.step();
        if (testing::Test::HasFailure()) return;
    }
    load.drain(100'000);
}

TEST(SchedulerProperty, AnyLoadKeepsEveryInvariantAndDrains) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        run_random_load(seed);
        if (HasFailure()) return;
    }
}

// Memory for one request and a half.
SchedulerConfig tight_config(std::int64_t tokens) {
    SchedulerConfig config;
    config.max_num_seqs = 64;
    config.max_num_batched_tokens = 256;
    config.max_queue = 1000;
    config.max_model_len = 4096;
    config.groups = {{.num_blocks = kv::blocks_for(tokens * 3 / 2), .window = 0}};
    return config;
}

TEST(SchedulerProperty, SixtyFourClientsFinishWithMemoryForOneAndAHalf) {
    for (const PolicyKind policy : {PolicyKind::kFcfs, PolicyKind::kPriority, PolicyKind::kFair}) {
        SCOPED_TRACE(policy_name(policy));
        SchedulerConfig config = tight_config(464);
        config.policy = policy;
        Load load(config);
        for (std::uint64_t id = 0; id < 64; ++id) {
            SequenceSpec next = spec(id, 64, 64 + 400);
            next.client = base::ClientId(id);
            ASSERT_TRUE(load.submit(next, 400));
        }
        load.drain(64 * 500);
        EXPECT_EQ(load.num_finished(), 64);
        EXPECT_LE(load.recomputed_share(), 0.3);
    }
}

TEST(SchedulerProperty, OutputsMuchLongerThanForecastAreBoundedToo) {
    // The forecast starts low, all outputs run to a limit that nobody states: the worst for it.
    Load load(tight_config(1024));
    for (std::uint64_t id = 0; id < 20; ++id) ASSERT_TRUE(load.submit(spec(id, 24, 1400), 1000));
    load.drain(20 * 1200);
    EXPECT_EQ(load.num_finished(), 20);
    EXPECT_LE(load.recomputed_share(), 0.3);
}

TEST(SchedulerProperty, ASteadyFlowOfSmallOnesDoesNotStarveALargeOne) {
    for (const PolicyKind policy : {PolicyKind::kFcfs, PolicyKind::kPriority, PolicyKind::kFair}) {
        SCOPED_TRACE(policy_name(policy));
        SchedulerConfig config = tight_config(700);
        config.policy = policy;
        Load load(config);
        std::uint64_t id = 1;
        const auto feed = [&] {
            while (load.num_unfinished() < 12) ASSERT_TRUE(load.submit(spec(id++, 40, 120), 60));
        };
        feed();
        for (int i = 0; i < 5; ++i) load.step();
        ASSERT_TRUE(load.submit(spec(0, 1000, 1040), 20));
        const std::int64_t before = load.num_finished();
        bool is_large_done = false;
        for (int i = 0; i < 5000 && !is_large_done; ++i) {
            feed();
            for (const SeqId seq : load.step().ended)
                is_large_done = is_large_done || seq == SeqId(0);
        }
        EXPECT_TRUE(is_large_done);
        EXPECT_GT(load.num_finished() - before, 10);  // small ones passed meanwhile
    }
}

TEST(SchedulerProperty, ACacheThatIsOftenFullNeverFailsByFragmentation) {
    std::mt19937 random(1);
    SchedulerConfig config = tight_config(4000);
    Load load(config);
    std::uint64_t id = 0;
    int num_full = 0;  // steps with 95 % of the blocks in use
    for (int step = 0; step < 10'000; ++step) {
        while (load.num_unfinished() < 40) {
            const bool is_long = random() % 8 == 0;
            const std::int64_t prompt = is_long ? 400 + random() % 800 : 1 + random() % 60;
            ASSERT_TRUE(load.submit(spec(id++, prompt, prompt + 600), 1 + random() % 500));
        }
        // One preemption may make room; all at once would be a collapse.
        EXPECT_LE(load.step().preempted.size(), 2U);
        num_full += load.scheduler().stats().kv_usage > 0.95 ? 1 : 0;
        if (HasFailure()) return;
    }
    EXPECT_GT(num_full, 400);
    EXPECT_LT(load.recomputed_share(), 0.1);
    load.drain(100'000);
}

}  // namespace
}  // namespace pagoda::sched
