#include "kernels/registry.h"

#include <string>

#include <gtest/gtest.h>

namespace pagoda::kernels {
namespace {

constexpr auto kEverything = static_cast<CpuFeature>(~0U);

std::string chosen_name(std::string_view wanted, CpuFeature features) {
    const auto chosen = choose_variant(wanted, features);
    return chosen.ok() ? (*chosen)->name : "error: " + chosen.error().message;
}

TEST(Registry, TakesTheBestVariantThatTheFeaturesAllow) {
    EXPECT_EQ(chosen_name("", CpuFeature::kNone), "ref");
    EXPECT_EQ(chosen_name("", CpuFeature::kAvx2), "avx2");
    EXPECT_EQ(chosen_name("", CpuFeature::kAvx2 | CpuFeature::kAvx512), "avx2");
    EXPECT_EQ(chosen_name("", CpuFeature::kAvx2 | CpuFeature::kAvxVnni), "avx_vnni");
    EXPECT_EQ(chosen_name("", kEverything), "avx512_bf16");
}

TEST(Registry, Bf16IsChosenByItselfOnlyWhereItIsFast) {
    const auto slow = static_cast<CpuFeature>(static_cast<std::uint32_t>(kEverything) &
                                              ~static_cast<std::uint32_t>(CpuFeature::kFastBf16));
    EXPECT_EQ(chosen_name("", slow), "avx512_vnni");
    EXPECT_EQ(chosen_name("avx512", slow), "avx512_vnni");
    EXPECT_EQ(chosen_name("avx512_bf16", slow), "avx512_bf16");
}

TEST(Registry, AFeatureWithoutItsBaseIsNotEnough) {
    EXPECT_EQ(chosen_name("", CpuFeature::kAvx512Vnni), "ref");
    EXPECT_EQ(chosen_name("", CpuFeature::kAvxVnni), "ref");
}

TEST(Registry, TakesTheVariantThatIsNamed) {
    EXPECT_EQ(chosen_name("ref", kEverything), "ref");
    EXPECT_EQ(chosen_name("avx2", kEverything), "avx2");
    EXPECT_EQ(chosen_name("avx_vnni", kEverything), "avx_vnni");
    EXPECT_EQ(chosen_name("avx512_vnni", kEverything), "avx512_vnni");
    EXPECT_EQ(chosen_name("avx512", kEverything), "avx512_bf16");
}

TEST(Registry, AnUnknownNameListsWhatCanBeHad) {
    const auto chosen = choose_variant("sse9", CpuFeature::kAvx2);
    ASSERT_FALSE(chosen.ok());
    EXPECT_EQ(chosen.error().code, base::ErrorCode::kInvalidArgument);
    EXPECT_EQ(chosen.error().message,
              "no kernel variant is called \"sse9\"; this build has ref, avx2, avx_vnni, "
              "avx512_vnni, avx512_bf16, and this machine can run ref, avx2");
}

TEST(Registry, AVariantThatTheMachineCannotRunIsRefused) {
    for (const std::string_view wanted : {"avx512_vnni", "avx512"}) {
        const auto chosen = choose_variant(wanted, CpuFeature::kAvx2);
        ASSERT_FALSE(chosen.ok());
        EXPECT_EQ(chosen.error().code, base::ErrorCode::kUnsupported);
        EXPECT_EQ(chosen.error().message, "this machine cannot run the kernel variant \"" +
                                              std::string(wanted) + "\"; it can run ref, avx2");
    }
}

TEST(Registry, NoVariantHasAHole) {
    for (const Kernels& kernels : all_variants()) {
        SCOPED_TRACE(kernels.name);
        EXPECT_GT(kernels.tile_columns, 0);
        EXPECT_GT(kernels.attention_rows, 0);
        EXPECT_NE(kernels.packed_bytes, nullptr);
        EXPECT_NE(kernels.quantized_row_bytes, nullptr);
        EXPECT_NE(kernels.attention_scratch_floats, nullptr);
        for (const Provider& row : providers(kernels)) EXPECT_FALSE(row.variant.empty()) << row.op;
    }
}

TEST(Registry, ProvidersNameTheVariantThatOverrides) {
    const auto chosen = choose_variant("avx512_vnni", kEverything);
    ASSERT_TRUE(chosen.ok());
    bool seen_pack = false;
    for (const Provider& row : providers(**chosen)) {
        if (row.op == "linear_int8") {
            EXPECT_EQ(row.variant, "avx512_vnni");
        }
        if (row.op == "pack") {
            EXPECT_EQ(row.variant, "avx2");
            seen_pack = true;
        }
    }
    EXPECT_TRUE(seen_pack);
}

TEST(Registry, AvxVnniMultipliesIntegersAndInheritsTheRest) {
    const auto chosen = choose_variant("avx_vnni", kEverything);
    ASSERT_TRUE(chosen.ok());
    for (const Provider& row : providers(**chosen)) {
        const bool is_own = row.op == "linear_int8" || row.op == "peak_int8";
        if (is_own) {
            EXPECT_EQ(row.variant, "avx_vnni") << row.op;
        } else {
            EXPECT_NE(row.variant, "avx_vnni") << row.op;
        }
    }
}

TEST(Registry, Avx512Bf16MultipliesBf16AndInheritsTheRest) {
    const auto chosen = choose_variant("avx512_bf16", kEverything);
    ASSERT_TRUE(chosen.ok());
    for (const Provider& row : providers(**chosen))
        EXPECT_EQ(row.variant == "avx512_bf16", row.op == "linear_bf16") << row.op;
    for (const Kernels& kernels : all_variants())
        EXPECT_EQ(kernels.multiplies_bf16, std::string_view(kernels.name) == "avx512_bf16");
}

TEST(CpuFeatures, AreConsistent) {
    const CpuFeature features = detect_cpu_features();
    if (contains(features, CpuFeature::kAvx512Vnni)) {
        EXPECT_TRUE(contains(features, CpuFeature::kAvx512));
        EXPECT_TRUE(contains(features, CpuFeature::kAvx2));
    }
    EXPECT_FALSE(cpu_model_name().empty());
}

}  // namespace
}  // namespace pagoda::kernels
