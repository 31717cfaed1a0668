// What attention promises about bits: a row's result depends on its own query and keys alone.
// Bounds against the exact result stand in attention_conformance_test.cpp.

#include "kernels/ops/attention.h"

#include <gtest/gtest.h>

#include "base/thread_team.h"
#include "kernels/attention_case.h"
#include "kernels/registry.h"

namespace pagoda::kernels {
namespace {

std::vector<const Kernels*> runnable_variants() {
    std::vector<const Kernels*> variants;
    for (const Kernels& kernels : all_variants()) {
        if (contains(detect_cpu_features(), kernels.required)) variants.push_back(&kernels);
    }
    return variants;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class Attention : public testing::TestWithParam<const Kernels*> {
  protected:
    const Kernels& kernels() const { return *GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Variants, Attention, testing::ValuesIn(runnable_variants()),
                         [](const auto& variant) { return std::string(variant.param->name); });

// Shapes in which rows of a tile differ in what they see: at the diagonal, at a window's edge,
// across chunks.
std::vector<AttentionCase> ragged_cases() {
    return {
        {.name = "chat", .kv_heads = 2, .group = 3, .head_dim = 64, .positions = 300},
        {.name = "float", .group = 4, .head_dim = 80, .positions = 290, .dtype = KvDType::kF32},
        {.name = "window", .group = 2, .head_dim = 96, .positions = 310, .window = 41},
        {.name = "narrow", .group = 5, .head_dim = 32, .positions = 270, .window = 3},
        {.name = "capped",
         .group = 7,
         .head_dim = 16,
         .positions = 280,
         .soft_cap = 20,
         .has_sinks = true},
        {.name = "wide",
         .group = 1,
         .head_dim = 256,
         .positions = 200,
         .dtype = KvDType::kF32,
         .window = 150},
        {.name = "int8", .group = 3, .head_dim = 64, .positions = 300, .dtype = KvDType::kInt8},
        {.name = "int8, window",
         .kv_heads = 2,
         .group = 2,
         .head_dim = 80,
         .positions = 290,
         .dtype = KvDType::kInt8,
         .window = 45,
         .soft_cap = 20,
         .has_sinks = true},
    };
}

TEST_P(Attention, ARowAloneGivesTheBitsOfTheBatch) {
    for (const AttentionCase& c : ragged_cases()) {
        const PagedSequence sequence(kernels(), c);
        constexpr std::int64_t kRows = 70;
        const std::int64_t first = c.positions - kRows - 5;
        const std::vector<float> batch = sequence.attend(kernels(), first, kRows);
        for (std::int64_t row = 0; row < kRows; ++row) {
            const std::vector<float> alone = sequence.attend(kernels(), first + row, 1);
            const auto begin = batch.begin() + row * c.q_stride();
            ASSERT_TRUE(same_bits(alone, {begin, begin + c.q_stride()}))
                << c.name << " row " << row;
        }
        for (const std::int64_t rows : {2, 3, 5, 8, 13, 31}) {
            const std::vector<float> part = sequence.attend(kernels(), first, rows);
            ASSERT_TRUE(same_bits(part, {batch.begin(), batch.begin() + rows * c.q_stride()}))
                << c.name << ", " << rows << " rows";
        }
    }
}

TEST_P(Attention, ChunksApartAndMergedGiveTheSameBits) {
    for (AttentionCase c : ragged_cases()) {
        c.positions = 700;
        const PagedSequence sequence(kernels(), c);
        for (const std::int64_t rows : {1, 4, 33}) {
            const std::int64_t first = 630 - rows;
            const std::vector<float> whole = sequence.attend(kernels(), first, rows);
            for (const std::int64_t piece : {1, 2, 4}) {
                EXPECT_TRUE(same_bits(whole, sequence.attend_split(kernels(), first, rows, piece)))
                    << c.name << ", " << rows << " rows, pieces of " << piece;
            }
        }
    }
}

TEST_P(Attention, ThePlaceOfABlockChangesNothing) {
    for (const AttentionCase& c : ragged_cases()) {
        const PagedSequence here(kernels(), c, 1);
        const PagedSequence there(kernels(), c, 2);
        EXPECT_TRUE(same_bits(here.attend(kernels(), 100, 60), there.attend(kernels(), 100, 60)));
    }
}

TEST_P(Attention, SlotsOutOfSightMayHoldNan) {
    for (const AttentionCase& c : ragged_cases()) {
        PagedSequence sequence(kernels(), c);
        constexpr std::int64_t kFirst = 100;
        constexpr std::int64_t kRows = 37;
        const std::vector<float> before = sequence.attend(kernels(), kFirst, kRows);
        for (const float value : before) ASSERT_TRUE(std::isfinite(value)) << c.name;
        sequence.forget_from(kernels(), kFirst + kRows);
        EXPECT_TRUE(same_bits(before, sequence.attend(kernels(), kFirst, kRows))) << c.name;
        // A NaN among a row's own keys is seen by that row and all later ones, and by no other.
        sequence.forget_from(kernels(), kFirst + 20);
        const std::vector<float> after = sequence.attend(kernels(), kFirst, kRows);
        for (std::size_t i = 0; i < after.size(); ++i) {
            const bool sees_it = i >= static_cast<std::size_t>(20 * c.q_stride());
            ASSERT_EQ(std::isnan(after[i]), sees_it) << c.name << " at " << i;
            ASSERT_TRUE(sees_it || after[i] == before[i]) << c.name << " at " << i;
        }
    }
}

// A step of several sequences through ops, as the model calls it.
class Step {
  public:
    Step(const Kernels& kernels, const AttentionCase& c) : case_(c), sequence_(kernels, c) {}

    // Rows [begin, begin + rows) of the sequence, each entry as a sequence of its own.
    std::vector<float> run(const Kernels& kernels, int threads,
                           const std::vector<std::pair<std::int64_t, std::int64_t>>& parts) const {
        base::ThreadTeam team(threads);
        const DeviceContext device{.kernels = &kernels, .team = &team};
        std::vector<SequenceRows> sequences;
        std::vector<float> q;
        for (const auto& [begin, rows] : parts) {
            const auto row = static_cast<std::int64_t>(q.size()) / case_.q_stride();
            sequences.push_back({.first_row = row,
                                 .num_rows = rows,
                                 .first_position = begin,
                                 .block_table = sequence_.table()});
            const float* from = sequence_.queries() + begin * case_.q_stride();
            q.insert(q.end(), from, from + rows * case_.q_stride());
        }
        std::vector<float> out(q.size(), -7);
        AttentionWorkspace workspace(
            device, {.max_rows = static_cast<std::int64_t>(q.size()) / case_.q_stride(),
                     .max_sequences = static_cast<std::int64_t>(parts.size()),
                     .max_positions = case_.positions,
                     .heads = case_.heads(),
                     .kv_heads = case_.kv_heads,
                     .head_dim = case_.head_dim});
        attention(device,
                  {.kv = sequence_.view(),
                   .q = q.data(),
                   .q_stride = case_.q_stride(),
                   .out = out.data(),
                   .out_stride = case_.q_stride(),
                   .heads = case_.heads(),
                   .scale = case_.scale(),
                   .soft_cap = case_.soft_cap,
                   .window = case_.window,
                   .sinks = sequence_.sinks(),
                   .sequences = sequences},
                  workspace);
        return out;
    }

    const PagedSequence& sequence() const { return sequence_; }

  private:
    AttentionCase case_;
    PagedSequence sequence_;
};

TEST_P(Attention, TheNumberOfThreadsChangesNoBit) {
    for (AttentionCase c : ragged_cases()) {
        c.positions = 1500;
        const Step step(kernels(), c);
        // Decode rows at several depths and two pieces of prefill; then one deep row alone.
        const std::vector<std::pair<std::int64_t, std::int64_t>> mixed = {
            {0, 1}, {1499, 1}, {700, 70}, {33, 1}, {127, 2}, {1023, 5}};
        const std::vector<float> one = step.run(kernels(), 1, mixed);
        std::vector<float> expected;
        for (const auto& [begin, rows] : mixed) {
            const std::vector<float> part = step.sequence().attend(kernels(), begin, rows);
            expected.insert(expected.end(), part.begin(), part.end());
        }
        EXPECT_TRUE(same_bits(one, expected)) << c.name;
        const std::vector<float> deep = step.run(kernels(), 1, {{1499, 1}});
        for (const int threads : {2, 4}) {
            EXPECT_TRUE(same_bits(one, step.run(kernels(), threads, mixed))) << c.name;
            EXPECT_TRUE(same_bits(deep, step.run(kernels(), threads, {{1499, 1}}))) << c.name;
        }
    }
}

TEST_P(Attention, ABatchWithoutRowsDoesNothing) {
    const Step step(kernels(), {.name = "empty", .positions = 40});
    EXPECT_TRUE(step.run(kernels(), 2, {}).empty());
    EXPECT_TRUE(step.run(kernels(), 2, {{5, 0}}).empty());
}

TEST(AttentionWorkspace, StatesWhatItTakes) {
    base::ThreadTeam team(2);
    const DeviceContext device{.kernels = &all_variants().front(), .team = &team};
    const AttentionWorkspace::Limits limits{.max_rows = 512,
                                            .max_sequences = 64,
                                            .max_positions = 8192,
                                            .heads = 32,
                                            .kv_heads = 8,
                                            .head_dim = 128};
    const std::size_t bytes = AttentionWorkspace::bytes(device, limits);
    EXPECT_GT(bytes, std::size_t{1} << 20);
    EXPECT_LT(bytes, std::size_t{16} << 20);
}

TEST(AttentionDeathTest, ATableTooShortForItsRowsIsABug) {
    const Kernels& ref = all_variants().front();
    const Step step(ref, {.name = "short", .positions = 40});
    EXPECT_DEATH(static_cast<void>(step.run(ref, 1, {{60, 5}})), "2 blocks for 65 positions");
}

}  // namespace
}  // namespace pagoda::kernels
