// A step of a model takes no memory: everything is planned and made at load.

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/ops/attention.h"
#include "kernels/registry.h"
#include "model/model.h"
#include "model/toy_checkpoint_for_test.h"

namespace {

std::atomic<int> num_allocations{0};

void* counted(std::size_t bytes) {
    num_allocations.fetch_add(1, std::memory_order_relaxed);
    void* memory = std::malloc(bytes == 0 ? 1 : bytes);
    if (memory == nullptr) std::abort();
    return memory;
}

}  // namespace

// Of this whole program.
void* operator new(std::size_t bytes) {
    return counted(bytes);
}
void* operator new[](std::size_t bytes) {
    return counted(bytes);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t /*bytes*/) noexcept {
    std::free(memory);
}

namespace pagoda::model {
namespace {

// Two sequences of a one-layer toy, each with blocks of its own.
class Stepper {
  public:
    Stepper(const std::string& architecture, tensor::DType mlp, int threads)
        : toy_(architecture), team_(threads) {
        toy_.add("blk.0.ffn_gate.weight", mlp, {ToyCheckpoint::kFfn, ToyCheckpoint::kHidden});
        toy_.add("blk.0.ffn_up.weight", mlp, {ToyCheckpoint::kFfn, ToyCheckpoint::kHidden});
        toy_.add("blk.0.ffn_down.weight", mlp, {ToyCheckpoint::kHidden, ToyCheckpoint::kFfn});
        const kernels::Kernels& best =
            **kernels::choose_variant("", kernels::detect_cpu_features());
        auto loaded = Model::load(toy_.file(), {.kernels = &best, .team = &team_}, kLimits, {});
        EXPECT_TRUE(loaded.ok());
        model_ = std::move(loaded).value();
        const std::size_t block_bytes = kernels::kv_block_bytes(
            kernels::KvDType::kBF16, 1, static_cast<std::int32_t>(ToyCheckpoint::kHeadDim));
        memory_.resize(block_bytes * kBlocks);
        views_ = {{.dtype = kernels::KvDType::kBF16,
                   .kv_heads = 1,
                   .head_dim = static_cast<std::int32_t>(ToyCheckpoint::kHeadDim),
                   .num_blocks = kBlocks,
                   .block_bytes = block_bytes,
                   .data = memory_.data()}};
        for (std::int32_t block = 0; block < kBlocks / 2; ++block) {
            tables_[0].push_back(block);
            tables_[1].push_back(block + kBlocks / 2);
        }
        logits_.resize(2 * ToyCheckpoint::kVocab);
    }

    // `rows` of the first sequence and one of the second, behind `position` others.
    void prepare(std::int64_t rows, std::int64_t position) {
        tokens_.assign(static_cast<std::size_t>(rows + 1), 7);
        slices_ = {{.first_row = 0,
                    .num_rows = rows,
                    .first_position = position,
                    .block_tables = {tables_[0]}},
                   {.first_row = rows,
                    .num_rows = 1,
                    .first_position = position,
                    .block_tables = {tables_[1]}}};
        rows_ = {static_cast<std::int32_t>(rows - 1), static_cast<std::int32_t>(rows)};
    }
    void step() {
        model_->forward({.tokens = tokens_, .sequences = slices_}, views_);
        model_->logits(rows_, logits_);
    }

  private:
    static constexpr std::int32_t kBlocks = 16;
    static constexpr ModelLimits kLimits{
        .max_rows = 64, .max_sequences = 2, .max_positions = 256, .max_logit_rows = 2};

    ToyCheckpoint toy_;
    base::ThreadTeam team_;
    std::unique_ptr<Model> model_;
    std::vector<std::byte> memory_;
    std::vector<kernels::PagedKvView> views_;
    std::vector<std::int32_t> tables_[2];
    std::vector<base::TokenId> tokens_;
    std::vector<SequenceSlice> slices_;
    std::vector<std::int32_t> rows_;
    std::vector<float> logits_;
};

TEST(Step, TakesNoMemoryAfterTheFirst) {
    using tensor::DType;
    for (const auto& [architecture, mlp] :
         {std::pair{"llama", DType::kQ4_0}, {"qwen3", DType::kF32}, {"gemma3", DType::kQ8_0}}) {
        for (const int threads : {1, 2}) {
            Stepper stepper(architecture, mlp, threads);
            stepper.prepare(63, 0);
            stepper.step();  // scratch that grows to a batch's size has it now
            for (const std::int64_t rows : {63, 1}) {
                stepper.prepare(rows, 64);
                const int before = num_allocations.load();
                stepper.step();
                EXPECT_EQ(num_allocations.load() - before, 0)
                    << architecture << " with " << rows << " rows on " << threads << " threads";
            }
        }
    }
}

TEST(Step, IsCountedByATestThatSeesAllocations) {
    const int before = num_allocations.load();
    const std::vector<int> taken(100);
    EXPECT_EQ(num_allocations.load() - before, 1) << taken.size();
}

}  // namespace
}  // namespace pagoda::model
