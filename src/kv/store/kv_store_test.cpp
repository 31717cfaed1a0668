#include "kv/store/kv_store.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/byte_size.h"
#include "kernels/kv_format.h"
#include "kernels/ops/attention.h"
#include "kernels/registry.h"

namespace pagoda::kv {
namespace {

using kernels::ActivationMode;
using kernels::KvDType;

KvStoreSpec two_groups() {
    return {.dtype = KvDType::kBF16,
            .groups = {{.layers = {0, 2}, .kv_heads = 2, .head_dim = 32, .num_blocks = 5},
                       {.layers = {1}, .kv_heads = 1, .head_dim = 64, .num_blocks = 3}}};
}

std::string refusal(const KvStoreSpec& spec) {
    const auto store = KvStore::create(spec);
    EXPECT_EQ(store.ok(), check_spec(spec).ok());
    return store.ok() ? "" : store.error().message;
}

TEST(KvStore, GivesEachLayerMemoryOfItsOwn) {
    const KvStore store = KvStore::create(two_groups()).value();
    const auto first = store.layer_view(0);
    const auto second = store.layer_view(2);
    EXPECT_EQ(first.kv_heads, 2);
    EXPECT_EQ(first.num_blocks, 5);
    EXPECT_EQ(first.block_bytes, kernels::kv_block_bytes(KvDType::kBF16, 2, 32));
    EXPECT_EQ(store.layer_view(1).head_dim, 64);
    EXPECT_NE(first.data, second.data);
    std::memset(first.data, 0xff, 5 * first.block_bytes);
    EXPECT_EQ(second.data[0], std::byte{0});
}

TEST(KvStore, CountsTheBlocksOfAllLayers) {
    const KvStore store = KvStore::create(two_groups()).value();
    // 32 tokens, K and V, two bytes a value.
    EXPECT_EQ(store.bytes(), 2U * 5 * (32 * 2 * 2 * 2 * 32) + 3U * (32 * 2 * 2 * 64));
    EXPECT_EQ(group_block_bytes(KvDType::kBF16, two_groups().groups[0]), 2U * 32 * 2 * 2 * 2 * 32);
    EXPECT_EQ(group_block_bytes(KvDType::kF32, two_groups().groups[1]), 32U * 2 * 4 * 64);
}

TEST(KvStore, CountsTheScalesOfInt8) {
    KvStoreSpec spec = two_groups();
    spec.dtype = KvDType::kInt8;
    const KvStore store = KvStore::create(spec).value();
    // 32 tokens, K and V, of each KV head one byte a value and one float.
    EXPECT_EQ(store.layer_view(1).block_bytes, 32U * 2 * (64 + 4));
    EXPECT_EQ(store.bytes(), 2U * 5 * (32 * 2 * 2 * (32 + 4)) + 3U * (32 * 2 * (64 + 4)));
    EXPECT_EQ(group_block_bytes(KvDType::kInt8, spec.groups[0]), 2U * 32 * 2 * 2 * (32 + 4));
}

// In every type, scales too: attention reads nothing but the block.
TEST(KvStore, ACopiedBlockHoldsTheTokensOfItsSource) {
    for (const KvDType dtype : kernels::kKvDTypes) {
        KvStoreSpec spec = two_groups();
        spec.dtype = dtype;
        KvStore store = KvStore::create(spec).value();
        const auto view = store.layer_view(1);
        const std::vector<float> k(64, 0.5F);
        const std::vector<float> v(64, 3.0F);
        const std::int32_t block = 0;
        const std::int32_t slot = 0;
        const kernels::Kernels& ref = kernels::all_variants().front();
        ref.kv_write({.kv = view,
                      .k = k.data(),
                      .v = v.data(),
                      .k_stride = 64,
                      .v_stride = 64,
                      .rows = 1,
                      .blocks = &block,
                      .slots = &slot});
        store.copy_block(1, base::BlockId{0}, base::BlockId{2});
        std::memset(view.data, 0xff, view.block_bytes);  // what is left of the source is NaN
        const std::int32_t table[] = {2};
        std::vector<float> out(64);
        std::vector<float> scratch(ref.attention_scratch_floats(1, 1, 64));
        ref.attention({.kv = view,
                       .block_table = table,
                       .q = k.data(),
                       .q_stride = 64,
                       .out = out.data(),
                       .out_stride = 64,
                       .row_index = nullptr,
                       .rows = 1,
                       .first_position = 0,
                       .kv_head = 0,
                       .group = 1,
                       .scale = 1,
                       .soft_cap = 0,
                       .window = 0,
                       .sinks = nullptr,
                       .chunk_begin = 0,
                       .chunk_end = 1,
                       .begin_state = nullptr,
                       .end_state = nullptr,
                       .partials = nullptr,
                       .scratch = scratch.data()});
        for (const float value : out) EXPECT_FLOAT_EQ(value, 3.0F) << kv_dtype_name(dtype);
    }
}

TEST(KvStore, CopiesABlockInEveryLayerOfItsGroupAlone) {
    KvStore store = KvStore::create(two_groups()).value();
    for (const int layer : {0, 1, 2}) {
        const auto view = store.layer_view(layer);
        std::memset(view.data + view.block_bytes, 0x40 + layer, view.block_bytes);
    }
    store.copy_block(0, base::BlockId{1}, base::BlockId{2});
    for (const int layer : {0, 1, 2}) {
        const auto view = store.layer_view(layer);
        const auto expected = layer == 1 ? std::byte{0} : static_cast<std::byte>(0x40 + layer);
        EXPECT_EQ(view.data[2 * view.block_bytes], expected);
        EXPECT_EQ(view.data[3 * view.block_bytes - 1], expected);
        EXPECT_EQ(view.data[0], std::byte{0});
    }
}

TEST(KvStore, TakesMemoryOnlyForTheBlocksThatAreUsed) {
    const KvStoreSpec spec{
        .dtype = KvDType::kF32,
        .groups = {{.layers = {0, 1}, .kv_heads = 8, .head_dim = 128, .num_blocks = 4096}}};
    const std::uint64_t before = base::resident_bytes();
    const KvStore store = KvStore::create(spec).value();
    EXPECT_EQ(store.bytes(), std::size_t{2} << 30);
    const auto view = store.layer_view(1);
    std::memset(view.data, 1, 4 * view.block_bytes);
    EXPECT_LT(base::resident_bytes(), before + (std::uint64_t{64} << 20));
}

TEST(KvStore, RefusesWhatItCannotHold) {
    EXPECT_EQ(refusal(two_groups()), "");
    KvStoreSpec spec = two_groups();
    spec.groups[0].head_dim = 40;
    EXPECT_EQ(refusal(spec),
              "KV group 0 has heads of 40 values; multiples of 16 up to 256 can be had");
    spec = two_groups();
    spec.groups[0].head_dim = 272;
    EXPECT_NE(refusal(spec), "");
    spec = two_groups();
    spec.groups[1].layers = {2};
    EXPECT_EQ(refusal(spec), "layer 2 is in two KV groups");
    spec = two_groups();
    spec.groups[1].layers = {-1};
    EXPECT_NE(refusal(spec), "");
    spec = two_groups();
    spec.groups[1].num_blocks = 0;
    EXPECT_EQ(refusal(spec), "KV group 1 has 0 blocks; 1 to 2147483647 can be had");
    spec = two_groups();
    spec.groups[0].kv_heads = 0;
    EXPECT_NE(refusal(spec), "");
    spec = two_groups();
    spec.groups[0].layers = {};
    EXPECT_EQ(refusal(spec), "KV group 0 has no layers");
    spec = two_groups();
    spec.dtype = KvDType::kF32;
    spec.groups[0] = {
        .layers = {0, 2, 3}, .kv_heads = 65536, .head_dim = 256, .num_blocks = 2147483647};
    EXPECT_NE(refusal(spec), "") << "three times 8 EiB";
}

// Ends the process: with status 0 if the store is refused as it should be.
[[noreturn]] void create_under_a_limit() {
    std::ifstream statm("/proc/self/statm");
    std::uint64_t pages = 0;
    statm >> pages;
    const std::uint64_t now = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    const rlimit limit{now + (std::uint64_t{256} << 20), RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0) std::exit(2);
    // 32 layers of 64 MiB, of which some can be had.
    KvStoreSpec spec{.dtype = KvDType::kF32,
                     .groups = {{.kv_heads = 8, .head_dim = 128, .num_blocks = 256}}};
    for (int layer = 0; layer < 32; ++layer) spec.groups[0].layers.push_back(layer);
    const std::string message = refusal(spec);
    std::fprintf(stderr, "%s\n", message.c_str());
    std::exit(message.empty() ? 1 : 0);
}

TEST(KvStoreDeathTest, AddressSpaceThatTheSystemRefusesIsAnErrorWithTheSize) {
    EXPECT_EXIT(create_under_a_limit(), testing::ExitedWithCode(0),
                "refuses the 2 GiB of address space that the KV cache takes; raise its limit");
}

TEST(KvStoreDeathTest, ALayerWithoutKvIsABug) {
    const KvStore store = KvStore::create(two_groups()).value();
    EXPECT_DEATH(static_cast<void>(store.layer_view(3)), "layer 3 has no KV");
}

TEST(KvDtype, AutoFollowsTheActivations) {
    EXPECT_EQ(*parse_kv_dtype("auto", ActivationMode::kAuto), KvDType::kBF16);
    EXPECT_EQ(*parse_kv_dtype("auto", ActivationMode::kF32), KvDType::kF32);
    EXPECT_EQ(*parse_kv_dtype("bf16", ActivationMode::kF32), KvDType::kBF16);
    EXPECT_EQ(*parse_kv_dtype("f32", ActivationMode::kAuto), KvDType::kF32);
    EXPECT_EQ(kv_dtype_name(KvDType::kBF16), "bf16");
}

TEST(KvDtype, EveryTypeHasTheNameThatItIsAskedForBy) {
    for (const KvDType dtype : kernels::kKvDTypes)
        EXPECT_EQ(*parse_kv_dtype(kv_dtype_name(dtype), ActivationMode::kAuto), dtype);
    EXPECT_EQ(*parse_kv_dtype("int8", ActivationMode::kF32), KvDType::kInt8);
}

TEST(KvDtype, AnUnknownNameIsRefusedWithWhatCanBeHad) {
    const auto refused = parse_kv_dtype("int4", ActivationMode::kAuto);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().message,
              "kv_cache_dtype \"int4\" is not offered; auto, bf16, f32 and int8 are");
    EXPECT_EQ(refused.error().param, "kv_cache_dtype");
}

}  // namespace
}  // namespace pagoda::kv
