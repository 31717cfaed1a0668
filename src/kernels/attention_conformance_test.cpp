// Every variant's attention and kv_write against ref, and ref against exact arithmetic, within the
// bounds of conformance.h.

#include <gtest/gtest.h>

#include "kernels/attention_case.h"
#include "kernels/conformance.h"
#include "kernels/kv_format.h"
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

// K and V of the cases are normal values; none is larger than this.
constexpr double kLargestValue = 6;

// clang-format off
std::vector<AttentionCase> cases() {
    std::vector<AttentionCase> all = {
        {.name = "one token", .positions = 1},
        {.name = "two tokens", .positions = 2},
        {.name = "a chunk", .positions = 128},
        {.name = "a chunk and one", .positions = 129, .dtype = KvDType::kF32},
        {.name = "smollm2", .kv_heads = 3, .group = 3, .head_dim = 64, .positions = 200},
        {.name = "llama", .kv_heads = 2, .group = 4, .head_dim = 128, .positions = 150},
        {.name = "gemma", .group = 4, .head_dim = 256, .positions = 140, .window = 100},
        {.name = "gpt-oss", .group = 8, .head_dim = 64, .positions = 300, .window = 128,
         .has_sinks = true},
        {.name = "gemma2", .group = 2, .head_dim = 256, .positions = 130, .soft_cap = 50},
        {.name = "capped hard", .group = 2, .head_dim = 32, .positions = 130, .soft_cap = 2,
         .query_size = 8},
        {.name = "sharp", .group = 2, .head_dim = 64, .positions = 260, .query_size = 20},
        {.name = "window of one", .group = 3, .head_dim = 32, .positions = 140, .window = 1},
        {.name = "window over a chunk", .group = 3, .head_dim = 48, .positions = 420, .window = 129},
        {.name = "every row its own head", .kv_heads = 5, .group = 1, .head_dim = 80, .positions = 99},
        {.name = "many heads", .group = 13, .head_dim = 96, .positions = 70},
    };
    for (std::int32_t dims = 16; dims <= 256; dims += 16) {
        const KvDType dtype = dims % 32 == 0 ? KvDType::kBF16 : KvDType::kF32;
        all.push_back({.name = "head_dim", .group = 3, .head_dim = dims, .positions = 133, .dtype = dtype});
        all.push_back({.name = "int8", .group = 3, .head_dim = dims, .positions = 135, .dtype = KvDType::kInt8});
    }
    const std::size_t others = all.size();
    for (std::size_t i = 0; i < others; ++i) {
        if (all[i].window == 0 && all[i].soft_cap == 0 && !all[i].has_sinks) continue;
        all.push_back(all[i]);
        all.back().name += ", int8";
        all.back().dtype = KvDType::kInt8;
    }
    return all;
}
// clang-format on

TEST(AttentionConformance, RefIsTheTextbook) {
    const Kernels& ref = all_variants().front();
    for (const AttentionCase& c : cases()) {
        const PagedSequence sequence(ref, c);
        for (const std::int64_t row : {std::int64_t{0}, c.positions / 2, c.positions - 1}) {
            const std::vector<double> exact = sequence.exact(row);
            const std::vector<float> found = sequence.attend(ref, row, 1);
            const double bound = kAttentionBound * kLargestValue * (1 + sequence.largest_score());
            for (std::size_t i = 0; i < exact.size(); ++i) {
                ASSERT_NEAR(found[i], exact[i], bound)
                    << c.name << " head_dim " << c.head_dim << " row " << row << " at " << i;
            }
        }
    }
}

class Variant : public testing::TestWithParam<const Kernels*> {};
INSTANTIATE_TEST_SUITE_P(AttentionConformance, Variant, testing::ValuesIn(runnable_variants()),
                         [](const auto& variant) { return std::string(variant.param->name); });

TEST_P(Variant, AttentionStaysWithinItsBoundOfRef) {
    const Kernels& ref = all_variants().front();
    for (const AttentionCase& c : cases()) {
        const PagedSequence sequence(ref, c);
        const std::int64_t rows = std::min<std::int64_t>(c.positions, 19);
        const std::int64_t first = c.positions - rows;
        static_cast<void>(sequence.exact(c.positions - 1));  // for the size of its scores
        const std::vector<float> expected = sequence.attend(ref, first, rows);
        const std::vector<float> found = sequence.attend(*GetParam(), first, rows);
        // Scores of other rows may be larger than those that were looked at.
        const double bound = kAttentionBound * kLargestValue * (1 + 2 * sequence.largest_score());
        for (std::size_t i = 0; i < expected.size(); ++i) {
            ASSERT_NEAR(found[i], expected[i], bound)
                << c.name << " head_dim " << c.head_dim << " at " << i;
        }
    }
}

// Scores so far apart that all weights but one underflow, and sums that must not.
TEST_P(Variant, ExtremeScoresGiveTheValueOfTheLargest) {
    AttentionCase c{
        .name = "extreme", .group = 2, .head_dim = 32, .positions = 300, .query_size = 3e4F};
    for (const KvDType dtype : kKvDTypes) {
        c.dtype = dtype;
        const PagedSequence sequence(*GetParam(), c);
        const std::vector<double> exact = sequence.exact(299);
        const std::vector<float> found = sequence.attend(*GetParam(), 299, 1);
        for (std::size_t i = 0; i < exact.size(); ++i) ASSERT_NEAR(found[i], exact[i], 1e-3);
    }
}

// Values that rounding to bfloat16 treats apart: ties, carries into the exponent, infinities,
// subnormals, NaN of both signs and with low bits only.
std::vector<float> rounding_values(std::size_t count) {
    std::vector<float> values;
    std::mt19937 engine(5);
    const std::uint32_t special[] = {0x00000000, 0x80000000, 0x3f808000, 0x3f818000, 0x3f807fff,
                                     0x3f7fffff, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
                                     0x7f800001, 0xffffffff, 0x7fc00000, 0x00000001, 0x007fffff,
                                     0x00008000, 0x80018000};
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t bits =
            i < std::size(special) ? special[i] : static_cast<std::uint32_t>(engine());
        values.push_back(std::bit_cast<float>(bits));
    }
    return values;
}

TEST_P(Variant, KvWriteStoresTheBitsOfRefAndTouchesNoOtherSlot) {
    const Kernels& ref = all_variants().front();
    for (const KvDType dtype : kKvDTypes) {
        for (const std::int32_t dims : {16, 64, 80, 256}) {
            PagedKvView kv{.dtype = dtype,
                           .kv_heads = 2,
                           .head_dim = dims,
                           .num_blocks = 3,
                           .block_bytes = kv_block_bytes(dtype, 2, dims),
                           .data = nullptr};
            const std::vector<float> k = rounding_values(6 * 2 * static_cast<std::size_t>(dims));
            const std::vector<float> v(k.rbegin(), k.rend());
            const std::int32_t blocks[] = {2, 0, 2, 2, 0, 1};
            const std::int32_t slots[] = {0, 31, 1, 17, 16, 8};
            const auto written_by = [&](const Kernels& kernels) {
                std::vector<std::byte> memory(3 * kv.block_bytes, std::byte{0x5a});
                kv.data = memory.data();
                kernels.kv_write({.kv = kv,
                                  .k = k.data(),
                                  .v = v.data(),
                                  .k_stride = 2 * dims,
                                  .v_stride = 2 * dims,
                                  .rows = 6,
                                  .blocks = blocks,
                                  .slots = slots});
                return memory;
            };
            EXPECT_EQ(written_by(ref), written_by(*GetParam())) << "head_dim " << dims;
        }
    }
}

TEST(KvWrite, PutsValuesWhereTheLayoutSays) {
    const Kernels& ref = all_variants().front();
    PagedKvView kv{.dtype = KvDType::kBF16,
                   .kv_heads = 1,
                   .head_dim = 16,
                   .num_blocks = 1,
                   .block_bytes = kv_block_bytes(KvDType::kBF16, 1, 16),
                   .data = nullptr};
    std::vector<std::uint16_t> memory(kv.block_bytes / 2);
    kv.data = reinterpret_cast<std::byte*>(memory.data());
    std::vector<float> k(16, 0);
    std::vector<float> v(16, 0);
    k[5] = 2;
    v[7] = -1;
    const std::int32_t block = 0;
    const std::int32_t slot = 19;
    ref.kv_write({.kv = kv,
                  .k = k.data(),
                  .v = v.data(),
                  .k_stride = 16,
                  .v_stride = 16,
                  .rows = 1,
                  .blocks = &block,
                  .slots = &slot});
    // K [token / 16][dim / 2][16 tokens][2]: run 1, pair 2, token 3, second of the pair.
    EXPECT_EQ(memory[1 * 256 + 2 * 32 + 3 * 2 + 1], 0x4000);
    // V [token / 2][dim][2 tokens], behind the 512 values of K: pair 9, dim 7, second token.
    EXPECT_EQ(memory[512 + 9 * 32 + 7 * 2 + 1], 0xbf80);
    EXPECT_EQ(std::count(memory.begin(), memory.end(), 0), 1022);
}

// One token of one head in a block of int8, everything else 0x5a.
class Int8Block {
  public:
    static constexpr std::int32_t kDims = 16;
    static constexpr std::int32_t kSlot = 22;

    Int8Block(const Kernels& kernels, std::vector<float> k, std::vector<float> v)
        : memory_(kv_block_bytes(KvDType::kInt8, 1, kDims), std::byte{0x5a}) {
        k.resize(kDims);
        v.resize(kDims);
        const std::int32_t block = 0;
        kernels.kv_write({.kv = {.dtype = KvDType::kInt8,
                                 .kv_heads = 1,
                                 .head_dim = kDims,
                                 .num_blocks = 1,
                                 .block_bytes = memory_.size(),
                                 .data = memory_.data()},
                          .k = k.data(),
                          .v = v.data(),
                          .k_stride = kDims,
                          .v_stride = kDims,
                          .rows = 1,
                          .blocks = &block,
                          .slots = &kSlot});
    }
    // K [token / 16][dim / 4][16 tokens][4]: run 1, token 6.
    int k_code(std::size_t dim) const { return code(1 * 256 + dim / 4 * 64 + 6 * 4 + dim % 4); }
    // V [token / 4][dim][4 tokens], behind 512 codes and 32 scales of K: group 5, token 2.
    int v_code(std::size_t dim) const { return code(640 + 5 * 64 + dim * 4 + 2); }
    float k_scale() const { return scale(512); }
    float v_scale() const { return scale(640 + 512); }
    // Bytes that were not written, for all that can be told.
    std::ptrdiff_t untouched() const {
        return std::count(memory_.begin(), memory_.end(), std::byte{0x5a});
    }
    std::size_t bytes() const { return memory_.size(); }

  private:
    int code(std::size_t at) const { return static_cast<std::int8_t>(memory_[at]); }
    float scale(std::size_t part) const {
        float value = 0;
        std::memcpy(&value, memory_.data() + part + kSlot * sizeof(float), sizeof(float));
        return value;
    }
    std::vector<std::byte> memory_;
};

TEST_P(Variant, Int8StandsWhereTheLayoutSaysRoundedToNearestEven) {
    const Int8Block block(
        *GetParam(), {127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 126.5F, -126.5F, 125.51F, -127, 0.49F},
        {0, 0, 0, 1, 0, 0, 0, 0, 0, -2});
    const int expected[] = {127, 0, 2, 2, 0, -2, 126, -126, 126, -127, 0, 0, 0, 0, 0, 0};
    for (std::size_t d = 0; d < std::size(expected); ++d)
        EXPECT_EQ(block.k_code(d), expected[d]) << d;
    EXPECT_EQ(block.k_scale(), 1.0F);
    for (std::size_t d = 0; d < 16; ++d)
        EXPECT_EQ(block.v_code(d), d == 3 ? 64 : d == 9 ? -127 : 0) << d;
    EXPECT_EQ(block.v_scale(), 2.0F / 127.0F);
    EXPECT_EQ(block.bytes(), 2U * (512 + 128));
    EXPECT_EQ(block.untouched(), 2 * (512 + 128) - 2 * (16 + 4));
}

TEST_P(Variant, Int8OfNothingIsZeroAndOfWhatIsNotFiniteIsNan) {
    const float infinity = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const Int8Block zero(*GetParam(), {}, {1e-28F, -1e-30F});
    EXPECT_EQ(zero.k_scale(), 0);
    EXPECT_EQ(zero.v_scale(), 0);
    const Int8Block broken(*GetParam(), {1, nan, 3}, {2, 4, -infinity});
    EXPECT_TRUE(std::isnan(broken.k_scale()));
    EXPECT_TRUE(std::isnan(broken.v_scale()));
    for (const Int8Block* block : {&zero, &broken}) {
        for (std::size_t d = 0; d < 16; ++d) {
            EXPECT_EQ(block->k_code(d), 0) << d;
            EXPECT_EQ(block->v_code(d), 0) << d;
        }
    }
    const Int8Block large(*GetParam(), {3e38F, 1e38F}, {2e-27F, -1e-27F});
    EXPECT_EQ(large.k_code(0), 127);
    EXPECT_EQ(large.k_code(1), 42);
    EXPECT_EQ(large.v_code(0), 127);
    EXPECT_EQ(large.v_code(1), -64);
}

}  // namespace
}  // namespace pagoda::kernels
