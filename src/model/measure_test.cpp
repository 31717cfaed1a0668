// measure() of real files: everything offered in the reference data, and PAGODA_MODEL if there.

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "kernels/registry.h"
#include "model/model.h"
#include "model/toy_checkpoint_for_test.h"

namespace pagoda::model {
namespace {

base::Result<ModelSizes> measured(const formats::Checkpoint& file, int threads,
                                  kernels::KvDType kv = kernels::KvDType::kBF16) {
    base::ThreadTeam team(threads);
    return measure(file, {.kernels = &kernels::all_variants().front(), .team = &team}, {}, kv);
}

void expect_accepted(const std::string& path) {
    const auto file = formats::open_checkpoint(path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    const auto sizes = measured(*file, 1);
    EXPECT_TRUE(sizes.ok()) << (sizes.ok() ? "" : sizes.error().message);
}

TEST(Measure, AcceptsEveryWholeFileOfTheReferenceData) {
    const char* golden = std::getenv("PAGODA_GOLDEN");
    ASSERT_NE(golden, nullptr) << "PAGODA_GOLDEN must point to tests/golden";
    for (const char* name : {"gguf/llama", "gguf/llama-tied", "gguf/mistral-full", "gguf/qwen2",
                             "gguf/qwen3", "gguf/gemma2", "gguf/gemma3"})
        expect_accepted(std::string(golden) + "/" + name + ".gguf");
    for (const char* type : {"F16", "BF16", "IQ4_NL", "IQ4_XS", "MXFP4", "Q2_K", "Q3_K", "Q4_0",
                             "Q4_1", "Q4_K", "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q8_0"})
        expect_accepted(std::string(golden) + "/gguf-quant/llama-" + type + ".gguf");
}

TEST(Measure, AcceptsTheModelOfTheEnvironment) {
    const char* path = std::getenv("PAGODA_MODEL");
    ASSERT_NE(path, nullptr) << "PAGODA_MODEL must name a model (scripts/fetch-model.sh)";
    expect_accepted(path);
}

TEST(Measure, CountsTheRunnersScratchOfEveryThread) {
    ToyCheckpoint toy;
    const auto one = measured(toy.file(), 1);
    const auto three = measured(toy.file(), 3);
    ASSERT_TRUE(one.ok() && three.ok());
    EXPECT_EQ(runner_floats(40, 64, 3).scratch, 120U);
    EXPECT_GE(three->workspace, one->workspace + 2 * 40 * sizeof(float));
}

TEST(Measure, KvBlocksAreCountedWithTheirScales) {
    ToyCheckpoint toy;
    const auto bf16 = measured(toy.file(), 1);
    const auto int8 = measured(toy.file(), 1, kernels::KvDType::kInt8);
    ASSERT_TRUE(bf16.ok() && int8.ok());
    constexpr std::uint64_t kDims = ToyCheckpoint::kHeadDim;
    ASSERT_EQ(bf16->block_bytes.size(), int8->block_bytes.size());
    for (std::size_t group = 0; group < bf16->block_bytes.size(); ++group)
        EXPECT_EQ(int8->block_bytes[group] * (2 * kDims), bf16->block_bytes[group] * (kDims + 4));
}

}  // namespace
}  // namespace pagoda::model
