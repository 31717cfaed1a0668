// Blocks that sequences of a batch have in common are read once for all of them, and that changes
// no bit of any row.

#include <atomic>

#include <gtest/gtest.h>

#include "base/thread_team.h"
#include "kernels/attention_case.h"
#include "kernels/registry.h"

namespace pagoda::kernels {
namespace {

// A sequence of a batch: the first `shared` tokens are those of an earlier one.
struct Branch {
    std::int64_t tokens = 1;
    std::size_t of = 0;
    std::int64_t shared = 0;
    std::int64_t rows = 1;  // the last of its tokens
};

// Sequences that branch from each other, each with block tables of two kinds over the same memory:
// one in which common blocks are shared, and one in which every sequence has its own copy.
class Family {
  public:
    Family(const Kernels& kernels, const AttentionCase& c, const std::vector<Branch>& branches)
        : case_(c), branches_(branches) {
        std::int64_t num_blocks = 0;
        for (const Branch& branch : branches) num_blocks += 2 * (branch.tokens / kBlockTokens + 1);
        view_ = {.dtype = c.dtype,
                 .kv_heads = c.kv_heads,
                 .head_dim = c.head_dim,
                 .num_blocks = num_blocks,
                 .block_bytes = kv_block_bytes(c.dtype, c.kv_heads, c.head_dim),
                 .data = nullptr};
        memory_ = tensor::AlignedBuffer(static_cast<std::size_t>(num_blocks) * view_.block_bytes);
        std::memset(memory_.data(), 0xff, memory_.bytes());  // NaN as value or scale
        view_.data = memory_.data();
        for (std::size_t i = 0; i < branches.size(); ++i) add(kernels, i);
        for (float& sink : sinks_) sink = normal_(engine_);
    }

    // Attention of all rows, with the tables of either kind.
    std::vector<float> run(const Kernels& kernels, int threads, bool is_shared) const {
        base::ThreadTeam team(threads);
        const DeviceContext device{.kernels = &kernels, .team = &team};
        std::vector<SequenceRows> sequences;
        std::int64_t rows = 0;
        std::int64_t longest = 0;
        for (std::size_t i = 0; i < branches_.size(); ++i) {
            const Branch& branch = branches_[i];
            sequences.push_back({.first_row = rows,
                                 .num_rows = branch.rows,
                                 .first_position = branch.tokens - branch.rows,
                                 .block_table = (is_shared ? shared_ : apart_)[i]});
            rows += branch.rows;
            longest = std::max(longest, branch.tokens);
        }
        std::vector<float> out(q_.size(), -7);
        AttentionWorkspace workspace(device,
                                     {.max_rows = rows,
                                      .max_sequences = static_cast<std::int64_t>(sequences.size()),
                                      .max_positions = longest,
                                      .heads = case_.heads(),
                                      .kv_heads = case_.kv_heads,
                                      .head_dim = case_.head_dim});
        attention(device,
                  {.kv = view_,
                   .q = q_.data(),
                   .q_stride = case_.q_stride(),
                   .out = out.data(),
                   .out_stride = case_.q_stride(),
                   .heads = case_.heads(),
                   .scale = case_.scale(),
                   .soft_cap = case_.soft_cap,
                   .window = case_.window,
                   .sinks = case_.has_sinks ? sinks_.data() : nullptr,
                   .sequences = sequences},
                  workspace);
        return out;
    }

  private:
    std::vector<float> random(std::int64_t count) {
        std::vector<float> values(static_cast<std::size_t>(count));
        for (float& value : values) value = normal_(engine_);
        return values;
    }

    void add(const Kernels& kernels, std::size_t i) {
        const Branch& branch = branches_[i];
        const auto taken = static_cast<std::size_t>(branch.shared * case_.kv_stride());
        k_.push_back(random(branch.tokens * case_.kv_stride()));
        v_.push_back(random(branch.tokens * case_.kv_stride()));
        std::copy_n(k_[branch.of].begin(), taken, k_[i].begin());
        std::copy_n(v_[branch.of].begin(), taken, v_[i].begin());
        const std::vector<float> q = random(branch.rows * case_.q_stride());
        q_.insert(q_.end(), q.begin(), q.end());
        const std::int64_t blocks = (branch.tokens - 1) / kBlockTokens + 1;
        std::vector<std::int32_t> shared;
        std::vector<std::int32_t> apart;
        for (std::int64_t block = 0; block < blocks; ++block) {
            const bool is_common = (block + 1) * kBlockTokens <= branch.shared;
            shared.push_back(is_common ? shared_[branch.of][static_cast<std::size_t>(block)]
                                       : next_block_++);
            apart.push_back(next_block_++);
        }
        write(kernels, i, shared);
        write(kernels, i, apart);
        shared_.push_back(std::move(shared));
        apart_.push_back(std::move(apart));
    }

    void write(const Kernels& kernels, std::size_t i, const std::vector<std::int32_t>& table) {
        std::vector<std::int32_t> blocks;
        std::vector<std::int32_t> slots;
        for (std::int64_t p = 0; p < branches_[i].tokens; ++p) {
            blocks.push_back(table[static_cast<std::size_t>(p / kBlockTokens)]);
            slots.push_back(static_cast<std::int32_t>(p % kBlockTokens));
        }
        kernels.kv_write({.kv = view_,
                          .k = k_[i].data(),
                          .v = v_[i].data(),
                          .k_stride = case_.kv_stride(),
                          .v_stride = case_.kv_stride(),
                          .rows = branches_[i].tokens,
                          .blocks = blocks.data(),
                          .slots = slots.data()});
    }

    AttentionCase case_;
    std::vector<Branch> branches_;
    std::mt19937 engine_{7};
    std::normal_distribution<float> normal_;
    std::vector<std::vector<float>> k_, v_;  // of each sequence
    std::vector<float> q_;
    std::vector<float> sinks_ = std::vector<float>(64);
    std::vector<std::vector<std::int32_t>> shared_, apart_;
    std::int32_t next_block_ = 0;
    tensor::AlignedBuffer memory_;
    PagedKvView view_;
};

std::vector<Branch> streams(std::size_t count, std::int64_t prefix, std::int64_t own) {
    std::vector<Branch> branches;
    for (std::size_t i = 0; i < count; ++i)
        branches.push_back({.tokens = prefix + own + static_cast<std::int64_t>(3 * i),
                            .of = 0,
                            .shared = i == 0 ? 0 : prefix});
    return branches;
}

// Batches with something in common: many and few, prefixes that end with a chunk, with a block and
// within one, nested ones, families, rows that end with the prefix, strangers and prefill between.
std::vector<std::vector<Branch>> batches() {
    return {
        streams(2, 256, 1),
        streams(3, 300, 40),
        streams(13, 384, 5),
        streams(33, 160, 9),
        {{.tokens = 900},
         {.tokens = 700, .of = 0, .shared = 640},
         {.tokens = 512, .of = 0, .shared = 512},
         {.tokens = 650, .of = 1, .shared = 321},
         {.tokens = 200},
         {.tokens = 260, .of = 4, .shared = 192}},
        {{.tokens = 400, .rows = 37},
         {.tokens = 390, .of = 0, .shared = 256},
         {.tokens = 333},
         {.tokens = 385, .of = 0, .shared = 352},
         {.tokens = 300, .of = 0, .shared = 128, .rows = 5},
         {.tokens = 1}},
    };
}

std::vector<AttentionCase> shapes() {
    return {
        {.name = "llama", .kv_heads = 2, .group = 4, .head_dim = 64},
        {.name = "float", .kv_heads = 3, .group = 3, .head_dim = 48, .dtype = KvDType::kF32},
        {.name = "one KV head", .group = 8, .head_dim = 128},
        {.name = "capped", .kv_heads = 2, .group = 1, .head_dim = 80, .soft_cap = 20},
        {.name = "sinks", .kv_heads = 2, .group = 5, .head_dim = 32, .has_sinks = true},
        {.name = "window", .kv_heads = 2, .group = 2, .head_dim = 64, .window = 390},
        {.name = "narrow", .kv_heads = 2, .group = 2, .head_dim = 64, .window = 100},
        {.name = "int8", .kv_heads = 2, .group = 4, .head_dim = 64, .dtype = KvDType::kInt8},
        {.name = "int8, narrow",
         .kv_heads = 1,
         .group = 3,
         .head_dim = 80,
         .dtype = KvDType::kInt8,
         .window = 100},
    };
}

std::vector<const Kernels*> runnable_variants() {
    std::vector<const Kernels*> variants;
    for (const Kernels& kernels : all_variants()) {
        if (contains(detect_cpu_features(), kernels.required)) variants.push_back(&kernels);
    }
    return variants;
}

class AttentionPrefix : public testing::TestWithParam<const Kernels*> {};
INSTANTIATE_TEST_SUITE_P(Variants, AttentionPrefix, testing::ValuesIn(runnable_variants()),
                         [](const auto& variant) { return std::string(variant.param->name); });

TEST_P(AttentionPrefix, SharedBlocksGiveTheBitsOfPrivateCopies) {
    for (const AttentionCase& c : shapes()) {
        const std::vector<std::vector<Branch>> all = batches();
        for (std::size_t b = 0; b < all.size(); ++b) {
            const Family family(*GetParam(), c, all[b]);
            const std::vector<float> apart = family.run(*GetParam(), 1, false);
            for (const float value : apart) ASSERT_TRUE(std::isfinite(value)) << c.name;
            for (const int threads : {1, 2, 5}) {
                const std::vector<float> shared = family.run(*GetParam(), threads, true);
                ASSERT_EQ(std::memcmp(apart.data(), shared.data(), apart.size() * sizeof(float)), 0)
                    << c.name << ", batch " << b << ", " << threads << " threads";
            }
        }
    }
}

// Chunks that a kernel was asked to read, over all KV heads.
std::atomic<std::int64_t> chunks_read{0};
void count_chunks(const AttentionArgs& args) noexcept {
    chunks_read += args.chunk_end - args.chunk_begin;
    all_variants().front().attention(args);
}

TEST(AttentionPrefix, ACommonPrefixIsReadOnce) {
    Kernels counting = all_variants().front();
    counting.attention = count_chunks;
    const AttentionCase c{.name = "llama", .kv_heads = 2, .group = 2, .head_dim = 16};
    const Family family(counting, c, streams(12, 512, 1));  // 4 chunks, and one of each
    for (const auto& [threads, parts] : {std::pair{1, 1}, {2, 4}}) {
        chunks_read = 0;
        static_cast<void>(family.run(counting, threads, true));
        EXPECT_EQ(chunks_read, 2 * (parts * 4 + 12)) << threads << " threads";
    }
    chunks_read = 0;
    static_cast<void>(family.run(counting, 1, false));
    EXPECT_EQ(chunks_read, 2 * 12 * 5);
}

}  // namespace
}  // namespace pagoda::kernels
