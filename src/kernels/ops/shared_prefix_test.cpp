#include "kernels/ops/shared_prefix.h"

#include <numeric>

#include <gtest/gtest.h>

#include "kernels/args.h"

namespace pagoda::kernels {
namespace {

constexpr std::int64_t kChunkBlocks = kAttentionChunk / kBlockTokens;

// A batch of decode rows, written as block tables.
class Batch {
  public:
    // The row of a sequence of that many tokens, which begins with the blocks [0, shared) of
    // another one and has blocks of its own behind them.
    void add(std::int64_t tokens, std::size_t other = 0, std::int64_t shared = 0) {
        std::vector<std::int32_t> table(
            static_cast<std::size_t>((tokens + kBlockTokens - 1) / kBlockTokens));
        std::iota(table.begin(), table.end(), next_block_);
        next_block_ += static_cast<std::int32_t>(table.size());
        if (shared > 0) std::copy_n(tables_[other].begin(), shared, table.begin());
        tables_.push_back(std::move(table));
        tokens_.push_back(tokens);
    }

    std::vector<SequenceRows> sequences() const {
        std::vector<SequenceRows> all;
        for (std::size_t i = 0; i < tables_.size(); ++i)
            all.push_back({.first_row = static_cast<std::int64_t>(i),
                           .num_rows = 1,
                           .first_position = tokens_[i] - 1,
                           .block_table = tables_[i]});
        return all;
    }

  private:
    std::vector<std::vector<std::int32_t>> tables_;
    std::vector<std::int64_t> tokens_;
    std::int32_t next_block_ = 100;
};

// "rows@chunks" of every pass, rows as the batch's; a last pass ends with a dot.
std::string text_of(const SharedPrefixes& found) {
    std::string text;
    for (const SharedPrefixes::Run& run : found.runs()) {
        text += text.empty() ? "" : " | ";
        for (std::int32_t p = run.pass_begin; p < run.pass_end; ++p) {
            const SharedPrefixes::Pass& pass = found.passes()[static_cast<std::size_t>(p)];
            text += p == run.pass_begin ? "" : " ";
            for (std::int32_t row = pass.row_begin; row < pass.row_end; ++row)
                text += std::to_string(found.batch_rows()[static_cast<std::size_t>(row)]);
            text += '@' + std::to_string(pass.chunk_begin) + '-' + std::to_string(pass.chunk_end);
            text += pass.is_last ? "." : "";
        }
    }
    return text;
}

std::string passes_of(const Batch& batch,
                      const SharedPrefixes::Division& division = {.max_rows = 32},
                      std::int64_t window = 0) {
    const std::vector<SequenceRows> sequences = batch.sequences();
    SharedPrefixes prefixes(static_cast<std::int64_t>(sequences.size()));
    prefixes.find(sequences, window, division);
    return text_of(prefixes);
}

TEST(SharedPrefixes, ACommonPrefixIsOnePassAndTheRestIsEachOnesOwn) {
    Batch batch;
    batch.add(700);
    batch.add(650, 0, 4 * kChunkBlocks);
    batch.add(600, 0, 4 * kChunkBlocks);
    EXPECT_EQ(passes_of(batch), "201@0-4 2@4-5. 0@4-6. 1@4-6.");
}

TEST(SharedPrefixes, OnlyWholeChunksThatEveryRowSeesAllOfAreShared) {
    Batch batch;
    batch.add(700);
    batch.add(650, 0, 3 * kChunkBlocks + 3);  // the prefix ends within a chunk
    EXPECT_EQ(passes_of(batch), "01@0-3 0@3-6. 1@3-6.");
    Batch short_row;
    short_row.add(700);
    short_row.add(2 * kAttentionChunk - 1, 0, 2 * kChunkBlocks);
    EXPECT_EQ(passes_of(short_row), "10@0-1 1@1-2. 0@1-6.");
    Batch tiny;
    tiny.add(700);
    tiny.add(kAttentionChunk - 1, 0, kChunkBlocks);
    EXPECT_EQ(passes_of(tiny), "");
}

TEST(SharedPrefixes, ARowMayEndWithThePrefix) {
    Batch batch;
    batch.add(700);
    batch.add(2 * kAttentionChunk, 0, 2 * kChunkBlocks);
    EXPECT_EQ(passes_of(batch), "10@0-2 1@2-2. 0@2-6.");
}

TEST(SharedPrefixes, LongerPrefixesWithinAreNested) {
    Batch batch;
    batch.add(1000);
    batch.add(1000, 0, 2 * kChunkBlocks);
    batch.add(1000, 0, 5 * kChunkBlocks);
    batch.add(1000, 1, 4 * kChunkBlocks);
    EXPECT_EQ(passes_of(batch), "0213@0-2 02@2-5 0@5-8. 2@5-8. 13@2-4 1@4-8. 3@4-8.");
}

TEST(SharedPrefixes, FamiliesAreApartAndStrangersStayOut) {
    Batch batch;
    batch.add(300);
    batch.add(300);  // a stranger
    batch.add(300, 0, kChunkBlocks);
    batch.add(300);
    batch.add(300, 3, 2 * kChunkBlocks);
    const std::vector<SequenceRows> sequences = batch.sequences();
    SharedPrefixes prefixes(8);
    prefixes.find(sequences, 0, {.max_rows = 32});
    EXPECT_EQ(text_of(prefixes), "02@0-1 0@1-3. 2@1-3. | 34@0-2 3@2-3. 4@2-3.");
    for (const std::size_t i : {0, 2, 3, 4}) EXPECT_TRUE(prefixes.is_shared(i)) << i;
    EXPECT_FALSE(prefixes.is_shared(1));
}

TEST(SharedPrefixes, AWindowThatCutsARowsKeysLeavesItAlone) {
    Batch batch;
    batch.add(500);
    batch.add(300, 0, kChunkBlocks);
    batch.add(300, 0, kChunkBlocks);
    EXPECT_EQ(passes_of(batch, {.max_rows = 32}, 300), "12@0-1 1@1-3. 2@1-3.");
    EXPECT_EQ(passes_of(batch, {.max_rows = 32}, 299), "");
    EXPECT_EQ(passes_of(batch, {.max_rows = 32}, 500), "012@0-1 0@1-4. 1@1-3. 2@1-3.");
}

TEST(SharedPrefixes, RowsAreCutSoThatEveryThreadHasWork) {
    Batch batch;
    batch.add(300);
    for (int i = 0; i < 4; ++i) batch.add(300, 0, kChunkBlocks);
    const auto runs = [&](const SharedPrefixes::Division& division) {
        const std::string text = passes_of(batch, division);
        return text.empty() ? 0 : 1 + std::count(text.begin(), text.end(), '|');
    };
    EXPECT_EQ(runs({.max_rows = 32, .kv_heads = 1, .threads = 1}), 1);
    EXPECT_EQ(runs({.max_rows = 2, .kv_heads = 1, .threads = 1}), 3);
    EXPECT_EQ(runs({.max_rows = 32, .kv_heads = 1, .threads = 2}), 2);  // of two rows at least
    EXPECT_EQ(runs({.max_rows = 32, .kv_heads = 8, .threads = 2}), 1);
    // A thread would have nothing to do; apart, long rows can be split.
    EXPECT_EQ(runs({.max_rows = 32, .kv_heads = 1, .threads = 3}), 0);
}

TEST(SharedPrefixes, SeveralRowsOfOneSequenceAreLeftAlone) {
    Batch batch;
    batch.add(300);
    batch.add(300, 0, kChunkBlocks);
    std::vector<SequenceRows> sequences = batch.sequences();
    sequences[1].num_rows = 2;
    SharedPrefixes prefixes(2);
    prefixes.find(sequences, 0, {.max_rows = 32});
    EXPECT_TRUE(prefixes.runs().empty());
}

}  // namespace
}  // namespace pagoda::kernels
