#include "prefix_load.h"

#include <set>

#include <gtest/gtest.h>

#include "base/thread_team.h"
#include "kernels/registry.h"

namespace pagoda::apps {
namespace {

// Keeps what it was asked to do; every sampled sequence produces token 1.
class RecordingExecutor final : public engine::Executor {
  public:
    engine::StepOutput run(const sched::StepPlan& plan,
                           std::span<engine::NewSequence> new_sequences) override {
        num_introduced += new_sequences.size();
        for (const base::SeqId seq : plan.ended) tables.erase(seq.value);
        engine::StepOutput output;
        for (const sched::SequencePlan& part : plan.sequences) {
            for (const sched::NewBlock& added : part.new_blocks)
                if (added.group == 0) tables[part.seq.value].push_back(added.block.value);
            EXPECT_GE(std::ssize(tables[part.seq.value]) * 32,
                      part.first_position + part.num_tokens);
            all_tables[part.seq.value] = tables[part.seq.value];
            if (part.is_sampled) ++num_sampled;
        }
        output.details.resize(plan.sequences.size());
        return output;
    }

    std::map<std::uint64_t, std::vector<std::int32_t>> tables, all_tables;
    std::size_t num_introduced = 0;
    std::int64_t num_sampled = 0;
};

model::ModelSizes sizes() {
    return {.vocab = 100, .groups = {{.window = 0, .layers = {0, 1}}}, .block_bytes = {3200}};
}

constexpr PrefixShape kShape{
    .prefix_tokens = 96, .concurrency = 3, .steps = 20, .repeat = 2, .step_tokens = 40};

TEST(PrefixLoad, SequencesHaveThePrefixInCommonAndNothingElse) {
    RecordingExecutor executor;
    base::ThreadTeam team(1);
    const kernels::DeviceContext device{.kernels = &kernels::all_variants().front(), .team = &team};
    const auto seconds = prefix_step_seconds(executor, kShape, sizes(), device, 5);
    ASSERT_TRUE(seconds.ok());
    EXPECT_EQ(seconds->size(), 2U);
    EXPECT_EQ(executor.num_introduced, 4U);
    EXPECT_EQ(executor.num_sampled, 3 * 20 * 3);  // one measurement warms up
    EXPECT_TRUE(executor.tables.empty());
    std::set<std::int32_t> own;
    std::size_t num_own = 0;
    for (const std::uint64_t seq : {6, 7, 8}) {
        const std::vector<std::int32_t>& table = executor.all_tables[seq];
        EXPECT_EQ(std::vector(table.begin(), table.begin() + 3), executor.all_tables[5]);
        own.insert(table.begin() + 3, table.end());
        num_own += table.size() - 3;
    }
    EXPECT_EQ(own.size(), num_own);
    EXPECT_EQ(own.count(0) + own.count(1) + own.count(2), 0U);
    EXPECT_LT(*own.rbegin(), kShape.num_blocks());
    EXPECT_LE(96 + 60, kShape.length());
}

TEST(PrefixLoad, TheBoundCountsThePrefixOnceAndEveryProduct) {
    const MatrixWork work{.layer_seconds = 0.25, .head_seconds = 0.25, .weight_bytes = 1e9};
    model::DecoderSpec spec;
    spec.heads = 4;
    spec.head_dim = 50;
    const kernels::Roof roof{.f32_gflops = 1e-9 * 2 * 126 * 2 * 400, .read_gb_s = 1};
    const StepBound bound = prefix_step_bound(kShape, work, sizes(), spec, roof);
    // 30 own tokens of each in the middle; 100 bytes a token.
    EXPECT_NEAR(bound.read_seconds, 1 + (96 + 3 * 30) * 100 * 1e-9, 1e-12);
    EXPECT_NEAR(bound.arithmetic_seconds, 3 * 0.5 + 3, 1e-9);
    EXPECT_EQ(bound.seconds(), bound.arithmetic_seconds);
    EXPECT_EQ((StepBound{.read_seconds = 2, .arithmetic_seconds = 1}).seconds(), 2);
}

}  // namespace
}  // namespace pagoda::apps
