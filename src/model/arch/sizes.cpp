#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "model/arch/arch.h"

namespace pagoda::model::arch {
namespace {

// No model comes near these; a file beyond them is damaged or hostile.
constexpr std::int64_t kMaxLayers = 4096;
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 24;
constexpr std::int64_t kLeastHeadDim = 16;

void read_heads(Hyperparameters& keys, DecoderSpec& spec) {
    spec.heads = keys.uniform_int("attention.head_count", std::nullopt, {1, kMaxExtent});
    spec.kv_heads = keys.uniform_int("attention.head_count_kv", spec.heads, {1, kMaxExtent});
    if (spec.heads % spec.kv_heads != 0)
        keys.refuse("attention.head_count_kv",
                    fmt::format("is {}, must divide the {} heads", spec.kv_heads, spec.heads));
    const std::int64_t key =
        keys.int_or("attention.key_length", spec.hidden / spec.heads, {1, kMaxExtent});
    const std::int64_t value = keys.int_or("attention.value_length", key, {1, kMaxExtent});
    spec.head_dim = key;
    if (key != value)
        keys.refuse("attention.value_length",
                    fmt::format("is {} with keys of {}, which is not supported", value, key),
                    base::ErrorCode::kUnsupported);
    if (key >= kLeastHeadDim && key <= kernels::kMaxHeadDim && key % 16 == 0) return;
    keys.refuse("attention.key_length",
                fmt::format("makes heads of {}, which is not supported; supported are multiples of "
                            "16 from {} to {}",
                            key, kLeastHeadDim, kernels::kMaxHeadDim),
                base::ErrorCode::kUnsupported);
    spec.head_dim = kLeastHeadDim;
}

// Rows of the embedding, which the tokenizer must not go beyond.
std::int64_t read_vocab(Hyperparameters& keys) {
    const formats::Checkpoint& checkpoint = keys.checkpoint();
    const formats::CheckpointTensor* embedding = checkpoint.find_tensor("token_embd.weight");
    if (embedding == nullptr) {
        keys.refuse(base::Error{
            base::ErrorCode::kDataLoss,
            fmt::format("{}: tensor token_embd.weight is missing (a vocabulary-only file can't be "
                        "run)",
                        checkpoint.path),
            "token_embd.weight"});
        return 0;
    }
    const std::int64_t vocab = embedding->view.rows();
    if (checkpoint.tokenizer &&
        static_cast<std::int64_t>(checkpoint.tokenizer->tokens.size()) > vocab)
        keys.refuse(base::Error{
            base::ErrorCode::kDataLoss,
            fmt::format("{}: the tokenizer has {} tokens, token_embd.weight only {} rows",
                        checkpoint.path, checkpoint.tokenizer->tokens.size(), vocab),
            "tokenizer.ggml.tokens"});
    return vocab;
}

}  // namespace

DecoderSpec read_sizes(Hyperparameters& keys, kernels::RopeStyle style,
                       std::string_view other_base) {
    DecoderSpec spec;
    spec.architecture = keys.checkpoint().architecture;
    spec.layers.resize(static_cast<std::size_t>(keys.required_int("block_count", {1, kMaxLayers})));
    spec.hidden = keys.required_int("embedding_length", {1, kMaxExtent});
    spec.context_length = keys.required_int("context_length", {1, kMaxContext});
    spec.ffn = keys.uniform_int("feed_forward_length", std::nullopt, {1, kMaxExtent});
    read_heads(keys, spec);
    spec.norm_epsilon =
        static_cast<float>(keys.required_float("attention.layer_norm_rms_epsilon", {0.0, 1.0}));
    spec.attention_scale = 1.0F / std::sqrt(static_cast<float>(spec.head_dim));
    spec.ropes.push_back(read_rope(keys, spec, style, other_base));
    spec.vocab = read_vocab(keys);
    return spec;
}

std::int64_t read_window(Hyperparameters& keys, std::int64_t context_length) {
    constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
    const std::int64_t window = keys.int_or("attention.sliding_window", 0, {0, kAny});
    return window < context_length ? window : 0;
}

}  // namespace pagoda::model::arch
