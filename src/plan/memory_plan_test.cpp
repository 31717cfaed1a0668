#include "plan/memory_plan.h"

#include <gtest/gtest.h>

#include "kv/index/prefix_index.h"

namespace pagoda::plan {
namespace {

constexpr std::uint64_t kMiB = 1U << 20;

// One group that sees everything: a block of 32 tokens takes 1 MiB.
model::ModelSizes full_attention() {
    return {.weights = 100 * kMiB,
            .workspace = 20 * kMiB,
            .vocab = 1000,
            .context_length = 8192,
            .groups = {{.window = 0, .layers = {0, 1}}},
            .block_bytes = {kMiB}};
}

MemoryBudget budget(std::uint64_t limit) {
    return {.limit_bytes = limit, .utilization = 1.0, .max_num_seqs = 8};
}

TEST(MemoryPlan, KvTakesWhatIsLeftAndNoMore) {
    const auto plan = make_memory_plan(full_attention(), budget(1024 * kMiB));
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    EXPECT_LE(plan->weights_bytes + plan->workspace_bytes + plan->other_bytes + plan->kv_bytes,
              1024 * kMiB);
    EXPECT_EQ(plan->group_blocks[0], 1024 - 100 - 20 - 276);
    EXPECT_EQ(plan->max_model_len, 8192);
    EXPECT_FALSE(plan->max_model_len_lowered);
}

TEST(MemoryPlan, HasRoomForWhatIsResidentAlreadyAndForQueuesBodiesTextAndHandling) {
    MemoryBudget asked = budget(1024 * kMiB);
    asked.in_use_bytes = 10 * kMiB;
    const auto plan = make_memory_plan(full_attention(), asked);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(kProcessShares.sum(), 276 * kMiB);
    EXPECT_EQ(plan->other_bytes, 10 * kMiB + kProcessShares.queue_bytes +
                                     kProcessShares.bodies_bytes +
                                     kProcessShares.small_bodies_bytes + kProcessShares.text_bytes +
                                     kProcessShares.index_bytes + kProcessShares.handling_bytes);
    EXPECT_LE(kv::prefix_index_bytes(40'000, 2),
              static_cast<std::int64_t>(kProcessShares.index_bytes));
}

TEST(MemoryPlan, KvIsNoLargerThanAllSequencesCanUse) {
    const auto plan = make_memory_plan(full_attention(), budget(1024 * 1024 * kMiB));
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->group_blocks[0], 8 * 8192 / 32);
}

TEST(MemoryPlan, AnAutomaticLengthIsLoweredToWhatFits) {
    const auto plan = make_memory_plan(full_attention(), budget(496 * kMiB));
    ASSERT_TRUE(plan.ok());
    EXPECT_TRUE(plan->max_model_len_lowered);
    EXPECT_EQ(plan->max_model_len, 100 * 32);
    EXPECT_NE(plan->describe().find("lowered to 3200"), std::string::npos);
}

TEST(MemoryPlan, AnExplicitLengthThatCanNotFitIsRefusedWithBothNumbers) {
    MemoryBudget asked = budget(496 * kMiB);
    asked.max_model_len = 4096;
    const auto plan = make_memory_plan(full_attention(), asked);
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.error().param, "max_model_len");
    EXPECT_NE(plan.error().message.find("4096"), std::string::npos);
    EXPECT_NE(plan.error().message.find("3200"), std::string::npos);
    asked.max_model_len = 9000;
    EXPECT_FALSE(make_memory_plan(full_attention(), asked).ok()) << "beyond the model's context";
}

TEST(MemoryPlan, AModelThatDoesNotFitIsRefused) {
    const auto plan = make_memory_plan(full_attention(), budget(350 * kMiB));
    ASSERT_FALSE(plan.ok());
    EXPECT_EQ(plan.error().code, base::ErrorCode::kResourceExhausted);
    EXPECT_NE(plan.error().message.find("100 MiB"), std::string::npos);
}

TEST(MemoryPlan, AnExplicitKvSizeIsKeptOrRefused) {
    MemoryBudget asked = budget(1024 * kMiB);
    asked.kv_cache_bytes = 50 * kMiB;
    const auto plan = make_memory_plan(full_attention(), asked);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->group_blocks[0], 50);
    asked.kv_cache_bytes = 1000 * kMiB;
    EXPECT_EQ(make_memory_plan(full_attention(), asked).error().param, "kv_cache_memory");
}

TEST(MemoryPlan, WindowedLayersTakeOnlyTheirWindowForEverySequence) {
    model::ModelSizes sizes = full_attention();
    sizes.groups = {{.window = 512, .layers = {0}}, {.window = 0, .layers = {1}}};
    sizes.block_bytes = {kMiB, kMiB};
    const auto plan = make_memory_plan(sizes, budget(4096 * kMiB));
    ASSERT_TRUE(plan.ok());
    // 512 tokens span at most 17 blocks; a step brings 512 tokens more in all, not for each.
    EXPECT_EQ(plan->group_blocks[0], 8 * 17 + 16);
    EXPECT_EQ(plan->group_blocks[1], 8 * 256);
}

TEST(MemoryPlan, AWindowedGroupHasNoMoreBlocksThanTheFullOne) {
    model::ModelSizes sizes = full_attention();
    sizes.groups = {{.window = 8000, .layers = {0}}, {.window = 0, .layers = {1}}};
    sizes.block_bytes = {kMiB, kMiB};
    const auto plan = make_memory_plan(sizes, budget(496 * kMiB));
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->group_blocks, (std::vector<std::int64_t>{50, 50}));
}

}  // namespace
}  // namespace pagoda::plan
