#include "model/weights.h"

#include <limits>

#include <gtest/gtest.h>

#include "kernels/registry.h"
#include "model/registry.h"
#include "model/toy_checkpoint_for_test.h"

namespace pagoda::model {
namespace {

using tensor::DType;

// The error of measuring the toy's weights, or a success as kInternal.
base::Error fault(ToyCheckpoint& toy) {
    const auto spec = read_decoder_spec(toy.file());
    if (!spec) return spec.error();
    const auto measured = measure_weights(toy.file(), *spec, kernels::all_variants().front());
    return measured ? base::Error{} : measured.error();
}

void expect_fault(ToyCheckpoint& toy, base::ErrorCode code, const std::string& tensor,
                  const std::string& part) {
    const base::Error error = fault(toy);
    EXPECT_EQ(error.code, code) << error.message;
    EXPECT_EQ(error.param, tensor) << error.message;
    EXPECT_NE(error.message.find("toy.gguf"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
}

TEST(Weights, EveryArchitectureBindsItsToy) {
    for (const Architecture& architecture : architectures()) {
        ToyCheckpoint toy{std::string(architecture.name)};
        if (architecture.name == "qwen2") {
            toy.add("blk.0.attn_q.bias", DType::kF32, {32});
            toy.add("blk.0.attn_k.bias", DType::kF32, {16});
            toy.add("blk.0.attn_v.bias", DType::kF32, {16});
        }
        EXPECT_EQ(fault(toy).message, "") << architecture.name;
    }
}

TEST(Weights, TypesThatAreNoWeightsAreRefusedWhereverTheyStand) {
    for (const DType type : {DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kF64}) {
        const std::string name(tensor::info(type).name);
        ToyCheckpoint norm;
        norm.add("blk.0.attn_norm.weight", type, {32});
        expect_fault(norm, base::ErrorCode::kUnsupported, "blk.0.attn_norm.weight", name);
        ToyCheckpoint bias;
        bias.add("blk.0.attn_q.bias", type, {32});
        expect_fault(bias, base::ErrorCode::kUnsupported, "blk.0.attn_q.bias", name);
        ToyCheckpoint embedding;  // beside a head of its own, it is only looked up
        embedding.add("token_embd.weight", type, {40, 32});
        embedding.add("output.weight", DType::kF32, {40, 32});
        expect_fault(embedding, base::ErrorCode::kUnsupported, "token_embd.weight", name);
        ToyCheckpoint divisors;
        divisors.add("rope_freqs.weight", type, {8});
        expect_fault(divisors, base::ErrorCode::kUnsupported, "rope_freqs.weight", name);
        ToyCheckpoint matrix;
        matrix.add("blk.0.ffn_up.weight", type, {64, 32});
        expect_fault(matrix, base::ErrorCode::kUnsupported, "blk.0.ffn_up.weight", name);
    }
}

TEST(Weights, SmallTensorsMayHaveAnyWeightType) {
    ToyCheckpoint toy;
    toy.add("blk.0.attn_norm.weight", DType::kBF16, {32});
    toy.add("blk.0.ffn_norm.weight", DType::kQ8_0, {32});
    toy.add("output_norm.weight", DType::kF16, {32});
    EXPECT_EQ(fault(toy).message, "");
}

TEST(Weights, OfAModelLieInOneArenaThatIsAsLargeAsMeasured) {
    ToyCheckpoint toy;
    const auto spec = read_decoder_spec(toy.file());
    ASSERT_TRUE(spec.ok());
    base::ThreadTeam team(2);
    for (const kernels::Kernels& variant : kernels::all_variants()) {
        if (!contains(kernels::detect_cpu_features(), variant.required)) continue;
        const auto weights =
            load_weights(toy.file(), *spec, {.kernels = &variant, .team = &team}, {});
        ASSERT_TRUE(weights.ok()) << weights.error().message;
        std::vector<const kernels::Weight*> all;
        std::size_t vectors = weights->output_norm.size();
        for (const LayerWeights& layer : weights->layers) {
            for (const LinearWeight* linear :
                 {&layer.q, &layer.k, &layer.v, &layer.output, &layer.gate, &layer.up, &layer.down})
                all.push_back(&linear->weight);
            vectors += layer.attention_norm.size() + layer.ffn_norm.size();
        }
        all.push_back(&weights->head.weight);
        const std::byte* expected = all.front()->view().data;
        std::size_t taken = 0;
        for (const kernels::Weight* weight : all) {
            EXPECT_EQ(weight->view().data, expected);
            taken += kernels::WeightArena::padded(weight->bytes());
            expected = all.front()->view().data + taken;
        }
        EXPECT_EQ(weights->arena->bytes(), taken);
        EXPECT_EQ(*measure_weights(toy.file(), *spec, variant), taken + vectors * sizeof(float));
    }
}

TEST(Weights, AMissingTensorIsNamed) {
    ToyCheckpoint toy;
    toy.drop_tensor("blk.0.ffn_up.weight");
    expect_fault(toy, base::ErrorCode::kDataLoss, "blk.0.ffn_up.weight", "is missing");
}

TEST(Weights, AMisshapenTensorIsNamedWithBothShapes) {
    ToyCheckpoint toy;
    toy.add("blk.0.attn_k.weight", DType::kF32, {32, 32});
    expect_fault(toy, base::ErrorCode::kDataLoss, "blk.0.attn_k.weight",
                 "has shape [32, 32], the hyperparameters say [16, 32]");
}

TEST(Weights, ATensorWithoutAPartIsRefused) {
    ToyCheckpoint toy;
    toy.add("blk.0.ffn_gate_inp.weight", DType::kF32, {8, 32});
    expect_fault(toy, base::ErrorCode::kUnsupported, "blk.0.ffn_gate_inp.weight", "no place");
    ToyCheckpoint layer;
    layer.add("blk.1.attn_q.weight", DType::kF32, {32, 32});
    expect_fault(layer, base::ErrorCode::kUnsupported, "blk.1.attn_q.weight", "no place");
}

TEST(Weights, BiasesAreBoundWhereTheArchitectureMayHaveThem) {
    ToyCheckpoint llama;
    for (const auto& [name, size] : {std::pair{"attn_output", 32}, {"ffn_up", 64}, {"attn_v", 16}})
        llama.add(std::string("blk.0.") + name + ".bias", DType::kF32, {size});
    EXPECT_EQ(fault(llama).message, "");
    ToyCheckpoint qwen("qwen3");
    qwen.add("blk.0.attn_output.bias", DType::kF32, {32});
    expect_fault(qwen, base::ErrorCode::kUnsupported, "blk.0.attn_output.bias", "no place");
}

TEST(Weights, RopeDivisorsMustBeSane) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (const float divisor :
         {0.0F, -1.0F, 1e-30F, kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
        ToyCheckpoint toy;
        toy.add("rope_freqs.weight", DType::kF32, {8}, divisor);
        base::ThreadTeam team(1);
        const auto spec = read_decoder_spec(toy.file());
        ASSERT_TRUE(spec.ok());
        const auto loaded = load_weights(
            toy.file(), *spec, {.kernels = &kernels::all_variants().front(), .team = &team}, {});
        ASSERT_FALSE(loaded.ok()) << divisor;
        EXPECT_EQ(loaded.error().param, "rope_freqs.weight");
    }
}

TEST(Weights, TheMeasureIsWhatLoadingPacks) {
    for (const kernels::Kernels& variant : kernels::all_variants()) {
        if (!contains(kernels::detect_cpu_features(), variant.required)) continue;
        ToyCheckpoint toy;
        base::ThreadTeam team(2);
        const auto spec = read_decoder_spec(toy.file());
        ASSERT_TRUE(spec.ok());
        const auto loaded =
            load_weights(toy.file(), *spec, {.kernels = &variant, .team = &team}, {});
        ASSERT_TRUE(loaded.ok()) << loaded.error().message;
        const LayerWeights& layer = loaded->layers.front();
        std::uint64_t bytes = loaded->head.weight.bytes();
        for (const LinearWeight* weight :
             {&layer.q, &layer.k, &layer.v, &layer.output, &layer.gate, &layer.up, &layer.down})
            bytes += weight->weight.bytes();
        for (const Vector* vector : {&layer.attention_norm, &layer.ffn_norm, &loaded->output_norm})
            bytes += vector->size() * sizeof(float);
        EXPECT_EQ(measure_weights(toy.file(), *spec, variant).value(), bytes) << variant.name;
    }
}

}  // namespace
}  // namespace pagoda::model
