// Random operation sequences against the fake executor, which keeps its own books, with every
// invariant checked after every step. The seed is in the failure's trace.

#include <map>
#include <random>
#include <unordered_map>

#include <gtest/gtest.h>

#include "sched/chat_trace_for_test.h"
#include "sched/fake_executor_for_test.h"
#include "sched/prompts_for_test.h"
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
            last_said_ = executor_.tokens(part.seq);
            said_.emplace_back(part.seq, last_said_);
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

    // All that the sequence that ended last read and said.
    [[nodiscard]] const std::vector<base::TokenId>& last_said() const { return last_said_; }

    // The same of all that ended since it was asked last.
    std::vector<std::pair<SeqId, std::vector<base::TokenId>>> take_said() {
        return std::exchange(said_, {});
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
    std::vector<base::TokenId> last_said_;
    std::vector<std::pair<SeqId, std::vector<base::TokenId>>> said_;
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

// The scheduler's figures at the end.
SchedulerStats run_random_load(unsigned seed, bool is_cached) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    SchedulerConfig config = random_config(random);
    if (is_cached)
        config.prefix_hasher = std::make_shared<const kv::PrefixHasher>(base::HashKey({}));
    Load load(config);
    PromptSource prompts(config.prefix_hasher, [&](std::int64_t low, std::int64_t high) {
        return low + below(random, high - low + 1);
    });
    const std::int64_t capacity = config.groups[0].num_blocks * kv::kBlockTokens;
    std::uint64_t next_id = 0;
    for (int step = 0; step < 300; ++step) {
        while (random() % 3 == 0) {
            const std::int64_t prompt = 1 + random() % (random() % 4 == 0 ? capacity : 90);
            SequenceSpec next = spec(next_id++, prompt, prompt + 1 + random() % 120);
            next.priority = static_cast<std::int32_t>(random() % 4);
            if (random() % 8 == 0) next.max_step_tokens = 1 + random() % 20;
            if (is_cached && random() % 8 > 0) next.prefix = prompts.next(prompt);
            next.computes_whole_prompt = random() % 8 == 0;
            load.submit(next, 1 + random() % 120);
        }
        if (random() % 6 == 0 && next_id > 0) load.cancel(SeqId(random() % next_id));
        if (random() % 50 == 0) load.scheduler().reset_prefix_cache();
        load.step();
        if (!load.last_said().empty() && random() % 4 == 0) prompts.remember(load.last_said());
        if (testing::Test::HasFailure()) break;
    }
    load.drain(100'000);
    return load.scheduler().stats();
}

TEST(SchedulerProperty, AnyLoadKeepsEveryInvariantAndDrains) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        const SchedulerStats stats = run_random_load(seed, false);
        EXPECT_EQ(stats.num_cached_tokens + stats.num_evicted_blocks, 0U);
        if (HasFailure()) return;
    }
}

// The executor checks that each position reads exactly its own sequence's tokens.
TEST(SchedulerProperty, WithAPrefixCacheTooAndEveryHitIsOfTheSameTokens) {
    SchedulerStats sum;
    for (unsigned seed = 0; seed < 40; ++seed) {
        const SchedulerStats stats = run_random_load(seed, true);
        sum.num_cached_tokens += stats.num_cached_tokens;
        sum.num_evicted_blocks += stats.num_evicted_blocks;
        sum.num_preemptions += stats.num_preemptions;
        if (HasFailure()) return;
    }
    // None of it is idle.
    EXPECT_GT(sum.num_cached_tokens, 50'000U);
    EXPECT_GT(sum.num_evicted_blocks, 1000U);
    EXPECT_GT(sum.num_preemptions, 50U);
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

SchedulerConfig cached_config(std::int64_t num_blocks) {
    SchedulerConfig config;
    config.max_num_seqs = 64;
    config.max_num_batched_tokens = 256;
    config.max_queue = 1000;
    config.max_model_len = 4096;
    config.groups = {{.num_blocks = num_blocks, .window = 0}};
    config.prefix_hasher = std::make_shared<const kv::PrefixHasher>(base::HashKey({}));
    return config;
}

std::shared_ptr<const kv::PromptKeys> keys_of(const SchedulerConfig& config,
                                              std::vector<base::TokenId> tokens) {
    return std::make_shared<const kv::PromptKeys>(config.prefix_hasher->keys(
        "s", std::make_shared<const std::vector<base::TokenId>>(std::move(tokens))));
}

TEST(SchedulerProperty, APreemptedSequenceResumesFromItsBlocks) {
    // The same load with and without: what others left in the cache is taken up again.
    std::array<std::uint64_t, 2> recomputed{};
    for (const bool is_cached : {false, true}) {
        SchedulerConfig config = cached_config(40);
        Load load(config);
        for (std::uint64_t id = 0; id < 24; ++id) {
            SequenceSpec next = spec(id, 100, 1100);
            std::vector<base::TokenId> tokens(100, static_cast<base::TokenId>(id));
            if (is_cached) next.prefix = keys_of(config, tokens);
            ASSERT_TRUE(load.submit(next, 300));
        }
        load.drain(24 * 400);
        const SchedulerStats stats = load.scheduler().stats();
        EXPECT_GE(stats.num_preemptions, 3U);
        recomputed[is_cached ? 1 : 0] = stats.num_recomputed_tokens;
    }
    EXPECT_LT(recomputed[1], recomputed[0] / 2);
}

TEST(SchedulerProperty, ManyFitWhereTheyShareTheirPrompt) {
    // 32 times 34 blocks would not fit into 128; 32 and 32 times 2 do.
    const SchedulerConfig config = cached_config(128);
    Load load(config);
    const std::vector<base::TokenId> tokens(1030, 7);
    const auto submit = [&](std::uint64_t id) {
        SequenceSpec next = spec(id, 1030, 1060);
        next.prefix = keys_of(config, tokens);
        ASSERT_TRUE(load.submit(next, 30));
    };
    submit(0);
    while (load.num_unfinished() > 0) load.step();
    for (std::uint64_t id = 1; id <= 32; ++id) submit(id);
    load.step();
    EXPECT_EQ(load.scheduler().stats().num_running, 32);
    EXPECT_LE(load.scheduler().stats().num_blocks_used, 32 + 32);
    load.drain(1000);
    EXPECT_EQ(load.scheduler().stats().num_preemptions, 0U);
}

TEST(SchedulerProperty, WhatSeveralAskForAtOnceIsComputedOnce) {
    const SchedulerConfig config = cached_config(512);
    Load load(config);
    std::vector<base::TokenId> tokens(1000, 7);
    for (std::uint64_t id = 0; id < 16; ++id) {
        SequenceSpec next = spec(id, 1000, 1030);
        tokens[900] = static_cast<base::TokenId>(id / 4);  // four prompts, each four times
        next.prefix = keys_of(config, tokens);
        ASSERT_TRUE(load.submit(next, 30));
    }
    load.drain(1000);
    // 896 tokens once, what is left of four prompts, and of each the last, partial block.
    EXPECT_LE(load.scheduler().stats().num_computed_tokens, 896 + 4 * 104 + 16 * (32 + 30));
}

TEST(SchedulerProperty, NobodyWaitsForWhoIsLowerInRank) {
    SchedulerConfig config = cached_config(512);
    config.policy = PolicyKind::kPriority;
    config.max_num_batched_tokens = 256;
    Load load(config);
    const std::vector<base::TokenId> tokens(1000, 7);
    SequenceSpec low = spec(0, 1000, 1030);
    low.prefix = keys_of(config, tokens);
    low.max_step_tokens = 64;
    ASSERT_TRUE(load.submit(low, 30));
    load.step();
    SequenceSpec high = spec(1, 1000, 1030);
    high.prefix = low.prefix;
    high.priority = -1;
    ASSERT_TRUE(load.submit(high, 30));
    load.step();
    EXPECT_EQ(load.scheduler().stats().num_running, 2);
    load.drain(1000);
}

TEST(SchedulerProperty, TwinsThatStartTogetherEndWithOneSetOfBlocks) {
    const SchedulerConfig config = cached_config(128);
    Load load(config);
    const std::vector<base::TokenId> tokens(70, 7);
    for (std::uint64_t id = 0; id < 2; ++id) {
        SequenceSpec next = spec(id, 70, 120);
        next.computes_whole_prompt = true;  // waits for nobody
        next.prefix = keys_of(config, tokens);
        ASSERT_TRUE(load.submit(next, 40));
    }
    load.step();
    EXPECT_EQ(load.scheduler().stats().num_running, 2);
    // Two shared, and the third of each.
    EXPECT_EQ(load.scheduler().stats().num_blocks_used, 4);
    load.drain(100);
    EXPECT_EQ(load.num_finished(), 2);
}

// Share of the prompts' tokens that a service of chats finds, with so many blocks.
double chat_hit_rate(std::int64_t num_blocks) {
    SchedulerConfig config = cached_config(num_blocks);
    config.max_model_len = 32'768;
    config.max_num_seqs = 16;
    Load load(config);
    ChatTrace trace(ChatTraceShape{}, 1);
    std::map<std::uint64_t, std::size_t> session_of;
    std::int64_t num_prompt_tokens = 0;
    std::uint64_t next_id = 0;
    ChatTrace::Turn turn;
    while (true) {
        while (load.num_unfinished() < 8 && trace.next(turn)) {
            const auto num_prompt = std::ssize(turn.prompt);
            num_prompt_tokens += num_prompt;
            session_of[next_id] = turn.session;
            SequenceSpec next = spec(next_id++, num_prompt, num_prompt + turn.num_outputs);
            next.prefix = keys_of(config, turn.prompt);
            EXPECT_TRUE(load.submit(next, turn.num_outputs));
        }
        if (load.num_unfinished() == 0) break;
        load.step();
        for (auto& [seq, said] : load.take_said())
            trace.answered(session_of.at(seq.value), std::move(said));
    }
    return static_cast<double>(load.scheduler().stats().num_cached_tokens) /
           static_cast<double>(num_prompt_tokens);
}

TEST(SchedulerProperty, ChatsFindFourFifthsOfTheirPrompts) {
    // Room for some thirty sessions; and for hardly more than run at once.
    EXPECT_GT(chat_hit_rate(1800), 0.8);
    EXPECT_GT(chat_hit_rate(600), 0.4);
}

}  // namespace
}  // namespace pagoda::sched
