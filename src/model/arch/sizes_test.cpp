// What each reader makes of its hyperparameters, and what it refuses.

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "model/registry.h"
#include "model/toy_checkpoint_for_test.h"

namespace pagoda::model {
namespace {

using formats::MetaArray;
using formats::MetaValue;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

DecoderSpec spec_of(ToyCheckpoint& toy) {
    auto spec = read_decoder_spec(toy.file());
    EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : spec.error().message);
    return spec ? std::move(spec).value() : DecoderSpec{};
}

// The toy with one key set is refused, by a line that names file, key and `part`.
void expect_refused(ToyCheckpoint toy, const std::string& key, const MetaValue& value,
                    const std::string& part = "") {
    toy.set(key, value);
    const auto spec = read_decoder_spec(toy.file());
    const std::string whole = toy.file().architecture + "." + key;
    ASSERT_FALSE(spec.ok()) << whole;
    EXPECT_EQ(spec.error().param, whole) << spec.error().message;
    EXPECT_TRUE(spec.error().message.starts_with("toy.gguf: ")) << spec.error().message;
    EXPECT_NE(spec.error().message.find(whole), std::string::npos) << spec.error().message;
    EXPECT_NE(spec.error().message.find(part), std::string::npos) << spec.error().message;
}

TEST(Sizes, AreReadFromTheirKeys) {
    ToyCheckpoint toy;
    const DecoderSpec spec = spec_of(toy);
    EXPECT_EQ(spec.hidden, 32);
    EXPECT_EQ(spec.ffn, 64);
    EXPECT_EQ(spec.heads, 2);
    EXPECT_EQ(spec.kv_heads, 1);
    EXPECT_EQ(spec.head_dim, 16);
    EXPECT_EQ(spec.vocab, 40);
    EXPECT_EQ(spec.context_length, 512);
    EXPECT_FLOAT_EQ(spec.attention_scale, 0.25F);
}

TEST(Sizes, OfHostileFilesAreRefused) {
    for (const char* key :
         {"block_count", "context_length", "embedding_length", "feed_forward_length",
          "attention.head_count", "attention.head_count_kv"}) {
        for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, kHuge, -kHuge - 1})
            expect_refused(ToyCheckpoint(), key, value, "must be between 1 and");
        expect_refused(ToyCheckpoint(), key, std::string("many"));
    }
    expect_refused(ToyCheckpoint(), "attention.head_count_kv", std::int64_t{3});
    expect_refused(ToyCheckpoint(), "attention.key_length", std::int64_t{24}, "multiples of 16");
    expect_refused(ToyCheckpoint(), "attention.value_length", std::int64_t{32}, "not supported");
    for (const double epsilon : {-1.0, 2.0, kInfinity, std::nan("")})
        expect_refused(ToyCheckpoint(), "attention.layer_norm_rms_epsilon", epsilon);
}

TEST(Sizes, AMissingKeyIsNamed) {
    for (const char* key :
         {"block_count", "context_length", "embedding_length", "feed_forward_length",
          "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
        ToyCheckpoint toy;
        toy.drop(key);
        const auto spec = read_decoder_spec(toy.file());
        ASSERT_FALSE(spec.ok()) << key;
        EXPECT_EQ(spec.error().message, std::string("toy.gguf: llama.") + key + " is missing");
    }
}

TEST(Sizes, LayersThatDifferAreRefused) {
    ToyCheckpoint toy;
    toy.set("block_count", std::int64_t{2});
    expect_refused(toy, "feed_forward_length", MetaArray{std::vector<std::int64_t>{64, 32}},
                   "differs between layers (64 and 32)");
}

TEST(Sizes, ATokenizerLargerThanTheVocabularyIsRefused) {
    ToyCheckpoint toy;
    formats::Checkpoint file;
    file.path = toy.file().path;
    file.architecture = toy.file().architecture;
    file.metadata = toy.file().metadata;
    file.tensors = toy.file().tensors;
    file.index_tensors();
    file.tokenizer.emplace();
    file.tokenizer->tokens.resize(41);
    const auto spec = read_decoder_spec(file);
    ASSERT_FALSE(spec.ok());
    EXPECT_NE(spec.error().message.find("41 tokens, token_embd.weight only 40"), std::string::npos);
}

TEST(Window, LiesWithinTheContextOrSeesAll) {
    for (const auto& [given, expected] :
         {std::pair<std::int64_t, std::int64_t>{0, 0}, {1, 1}, {511, 511}, {512, 0}, {kHuge, 0}}) {
        ToyCheckpoint llama;
        llama.set("attention.sliding_window", given);
        EXPECT_EQ(spec_of(llama).layers.front().window, expected) << given;
        if (given == 0) continue;
        ToyCheckpoint gemma("gemma3");
        gemma.set("attention.sliding_window", given);
        const DecoderSpec spec = spec_of(gemma);
        EXPECT_EQ(spec.layers.front().window, expected) << given;
        EXPECT_EQ(spec.layers.front().rope, 1U) << "a local layer keeps its rope base";
    }
    for (const char* architecture : {"llama", "qwen2", "qwen3", "gemma2", "gemma3"})
        expect_refused(ToyCheckpoint(architecture), "attention.sliding_window", std::int64_t{-1});
    expect_refused(ToyCheckpoint("gemma2"), "attention.sliding_window", std::int64_t{0});
}

TEST(Window, OfQwenMustCoverTheContext) {
    expect_refused(ToyCheckpoint("qwen3"), "attention.sliding_window", std::int64_t{128},
                   "of 128 is not supported");
    ToyCheckpoint toy("qwen3");
    toy.set("attention.sliding_window", std::int64_t{4096});
    EXPECT_EQ(spec_of(toy).layers.front().window, 0);
}

TEST(Window, PatternOfGemmaIsAPeriodOrAListOfLayers) {
    ToyCheckpoint toy("gemma3");
    toy.set("block_count", std::int64_t{4});
    toy.set("attention.sliding_window_pattern", std::int64_t{2});
    EXPECT_EQ(spec_of(toy).layers[1].window, 0);
    EXPECT_EQ(spec_of(toy).layers[2].window, 16);
    toy.set("attention.sliding_window_pattern",
            MetaArray{std::vector<bool>{false, true, true, false}});
    EXPECT_EQ(spec_of(toy).layers[0].window, 0);
    EXPECT_EQ(spec_of(toy).layers[1].window, 16);
    expect_refused(toy, "attention.sliding_window_pattern", std::int64_t{0});
    expect_refused(toy, "attention.sliding_window_pattern",
                   MetaArray{std::vector<std::int64_t>{1, 0}}, "2 entries for 4 layers");
}

RopeScaling scaling_of(ToyCheckpoint& toy) {
    return spec_of(toy).ropes.front().scaling;
}

TEST(RopeScalingKeys, ALinearFactorIsReadFromEitherKey) {
    ToyCheckpoint plain;
    EXPECT_EQ(scaling_of(plain).kind, RopeScalingKind::kNone);
    ToyCheckpoint with_type;
    with_type.set("rope.scaling.type", std::string("linear"));
    with_type.set("rope.scaling.factor", 8.0);
    EXPECT_EQ(scaling_of(with_type).kind, RopeScalingKind::kLinear);
    EXPECT_EQ(scaling_of(with_type).factor, 8.0);
    ToyCheckpoint old;
    old.set("rope.scale_linear", 4.0);
    EXPECT_EQ(scaling_of(old).kind, RopeScalingKind::kLinear);
    EXPECT_EQ(scaling_of(old).factor, 4.0);
    old.set("rope.scaling.type", std::string("linear"));
    EXPECT_EQ(scaling_of(old).factor, 4.0) << "the old key counts beside a type too";
    old.set("rope.scaling.factor", 4.0);
    EXPECT_EQ(scaling_of(old).factor, 4.0);
}

TEST(RopeScalingKeys, AnAttentionFactorCountsWithoutAType) {
    ToyCheckpoint toy;
    toy.set("rope.scaling.attn_factor", 1.25);
    EXPECT_EQ(scaling_of(toy).attention_factor, 1.25);
    toy.set("rope.scale_linear", 4.0);
    EXPECT_EQ(scaling_of(toy).attention_factor, 1.25);
}

TEST(RopeScalingKeys, YarnTakesItsTemperatureFromTheFactor) {
    ToyCheckpoint toy;
    toy.set("rope.scaling.type", std::string("yarn"));
    toy.set("rope.scaling.factor", 4.0);
    toy.set("rope.scaling.original_context_length", std::int64_t{128});
    const RopeScaling scaling = scaling_of(toy);
    EXPECT_EQ(scaling.kind, RopeScalingKind::kYarn);
    EXPECT_EQ(scaling.original_context, 128);
    EXPECT_DOUBLE_EQ(scaling.attention_factor, 1.0 + 0.1 * std::log(4.0));
    toy.set("rope.scaling.attn_factor", 0.5);
    EXPECT_DOUBLE_EQ(scaling_of(toy).attention_factor, 0.5 + 0.05 * std::log(4.0));
}

TEST(RopeScalingKeys, ATypeWithoutAFactorIsRefused) {
    for (const char* type : {"linear", "yarn"}) {
        ToyCheckpoint toy;
        toy.set("rope.scaling.type", std::string(type));
        const auto spec = read_decoder_spec(toy.file());
        ASSERT_FALSE(spec.ok()) << type;
        EXPECT_EQ(spec.error().param, "llama.rope.scaling.factor");
    }
}

TEST(RopeScalingKeys, ContradictionsAndUnknownTypesAreRefused) {
    ToyCheckpoint both;
    both.set("rope.scaling.factor", 2.0);
    expect_refused(both, "rope.scale_linear", 4.0, "is 4, but rope.scaling.factor is 2");
    ToyCheckpoint none;
    none.set("rope.scaling.factor", 2.0);
    expect_refused(none, "rope.scaling.type", std::string("none"));
    for (const char* type : {"longrope", "dynamic", "lin\near"})
        expect_refused(ToyCheckpoint(), "rope.scaling.type", std::string(type), "not supported");
}

TEST(RopeScalingKeys, NumbersThatMakeNoAnglesAreRefused) {
    for (const char* key :
         {"rope.scaling.factor", "rope.scaling.attn_factor", "rope.scaling.yarn_beta_fast",
          "rope.scaling.yarn_beta_slow", "rope.freq_base"})
        for (const double value : {0.0, -1.0, 1e-30, kInfinity, std::nan("")})
            expect_refused(ToyCheckpoint(), key, value, "must be between");
    for (const double value : {-1.0, 1e-30, kInfinity, std::nan("")})
        expect_refused(ToyCheckpoint(), "rope.scale_linear", value);
    ToyCheckpoint yarn;
    yarn.set("rope.scaling.type", std::string("yarn"));
    expect_refused(yarn, "rope.scaling.factor", 0.5, "at least 1");
    yarn.set("rope.scaling.factor", 4.0);
    expect_refused(yarn, "rope.freq_base", 1.0, "above 1");
    expect_refused(yarn, "rope.scaling.yarn_beta_fast", 0.5, "must not be below");
    expect_refused(yarn, "rope.scaling.original_context_length", std::int64_t{0});
    for (const std::int64_t pairs : {std::int64_t{0}, std::int64_t{3}, std::int64_t{18}})
        expect_refused(ToyCheckpoint(), "rope.dimension_count", pairs);
    expect_refused(ToyCheckpoint("gemma3"), "rope.freq_base_swa", 0.0);
}

TEST(RopeScalingKeys, OfGemma3AreForTheLayersThatSeeEverything) {
    ToyCheckpoint toy("gemma3");
    toy.set("rope.scaling.type", std::string("linear"));
    toy.set("rope.scaling.factor", 8.0);
    const DecoderSpec spec = spec_of(toy);
    EXPECT_EQ(spec.ropes[0].scaling.factor, 8.0);
    EXPECT_EQ(spec.ropes[1].scaling.kind, RopeScalingKind::kNone);
    EXPECT_TRUE(spec.ropes[0].has_divisors);
    EXPECT_FALSE(spec.ropes[1].has_divisors);
}

// Ollama's converter calls the bases of the layers that see everything, and of the windowed ones,
// rope.global and rope.local.
TEST(RopeBases, OfGemma3AreKnownByBothOfTheirNames) {
    for (const auto& [global, local] :
         {std::pair<const char*, const char*>{"rope.freq_base", "rope.freq_base_swa"},
          {"rope.global.freq_base", "rope.local.freq_base"},
          {"rope.global.freq_base", "rope.freq_base_swa"}}) {
        ToyCheckpoint toy("gemma3");
        toy.set(global, 1e6);
        toy.set(local, 20000.0);
        const DecoderSpec spec = spec_of(toy);
        ASSERT_EQ(spec.ropes.size(), 2U);
        EXPECT_EQ(spec.ropes[0].freq_base, 1e6) << global;
        EXPECT_EQ(spec.ropes[1].freq_base, 20000.0) << local;
        EXPECT_EQ(spec.layers.front().rope, 1U) << "the toy's only layer is windowed";
    }
}

TEST(RopeBases, ThatContradictEachOtherOrHaveNoMeaningAreRefused) {
    ToyCheckpoint toy("gemma3");
    toy.set("rope.freq_base", 1e6);
    toy.set("rope.freq_base_swa", 10000.0);
    expect_refused(toy, "rope.global.freq_base", 10000.0,
                   "is 10000, but gemma3.rope.freq_base is 1000000");
    expect_refused(toy, "rope.local.freq_base", 1e6, "but gemma3.rope.freq_base_swa is 10000");
    expect_refused(ToyCheckpoint("gemma3"), "rope.local.freq_base", 0.0);
    for (const char* architecture : {"llama", "qwen3", "gemma2"}) {
        expect_refused(ToyCheckpoint(architecture), "rope.global.freq_base", 1e6);
        expect_refused(ToyCheckpoint(architecture), "rope.local.freq_base", 1e4);
    }
}

TEST(UnknownKeys, RefuseTheLoad) {
    expect_refused(ToyCheckpoint(), "attention.scale", 0.125, "is 0.125, which a llama model");
    expect_refused(ToyCheckpoint(), "expert_count", std::int64_t{8});
    expect_refused(ToyCheckpoint(), "attention.causal", false, "is false");
    expect_refused(ToyCheckpoint(), "logit_scale", 0.0625);
    expect_refused(ToyCheckpoint(), "use_parallel_residual", true);
    expect_refused(ToyCheckpoint(), "tensor_data_layout", std::string("transposed"));
    expect_refused(ToyCheckpoint(), "rope.scaling.yarn_log_multiplier", 0.1);
    expect_refused(ToyCheckpoint(), "attn_logit_softcapping", 30.0);
    expect_refused(ToyCheckpoint(), "rope.dimension_sections",
                   MetaArray{std::vector<std::int64_t>{8, 4, 4}}, "an array of 3 items");
    expect_refused(ToyCheckpoint("qwen3"), "pooling_type", std::int64_t{3});
}

TEST(UnknownKeys, ThatChangeNothingAreLetPass) {
    ToyCheckpoint toy;
    toy.set("vocab_size", std::int64_t{40});
    toy.set("rope.dimension_count", std::int64_t{16});
    toy.set("rope.scaling.finetuned", true);
    toy.set("rope.scaling.original_context_length", std::int64_t{256});
    toy.set("expert_count", std::int64_t{0});
    toy.set("expert_used_count", std::int64_t{0});
    toy.set("attention.causal", true);
    toy.set("use_parallel_residual", false);
    toy.set("tensor_data_layout", std::string("Meta AI original pth"));
    toy.set("final_logit_softcapping", 0.0);
    toy.set("logit_scale", 1.0);
    EXPECT_EQ(spec_of(toy).hidden, 32);
}

}  // namespace
}  // namespace pagoda::model
