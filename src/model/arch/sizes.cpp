#include <cmath>

#include <fmt/core.h>

#include "model/arch/arch.h"

namespace pagoda::model::arch {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using formats::Checkpoint;

// No model comes near these; a file beyond them is damaged or hostile.
constexpr std::int64_t kMaxLayers = 4096;
constexpr std::int64_t kMaxExtent = std::int64_t{1} << 24;
constexpr std::int64_t kMaxContext = std::int64_t{1} << 31;

Error bad_key(const Checkpoint& checkpoint, std::string_view key, const std::string& reason) {
    const std::string whole = fmt::format("{}.{}", checkpoint.architecture, key);
    return Error{ErrorCode::kDataLoss, fmt::format("{}: {} {}", checkpoint.path, whole, reason),
                 whole};
}

// A required size in [1, limit].
Result<std::int64_t> read_size(const Checkpoint& checkpoint, std::string_view key,
                               std::int64_t limit) {
    const auto value = checkpoint.arch_int(key);
    if (!value) return value.error();
    if (!value->has_value()) return bad_key(checkpoint, key, "is missing");
    if (**value < 1 || **value > limit)
        return bad_key(checkpoint, key,
                       fmt::format("is {}, must be between 1 and {}", **value, limit));
    return **value;
}

// A size that some files give per layer; layers that differ are not supported.
Result<std::int64_t> read_uniform_size(const Checkpoint& checkpoint, std::string_view key,
                                       std::int64_t fallback) {
    const auto values = checkpoint.arch_ints(key);
    if (!values) return values.error();
    if (values->empty() && fallback > 0) return fallback;
    if (values->empty()) return bad_key(checkpoint, key, "is missing");
    for (const std::int64_t value : *values) {
        if (value != values->front())
            return Error{
                ErrorCode::kUnsupported,
                fmt::format("{}: {}.{} differs between layers ({} and {}), which is not "
                            "supported",
                            checkpoint.path, checkpoint.architecture, key, values->front(), value),
                std::string(key)};
    }
    if (values->front() < 1 || values->front() > kMaxExtent)
        return bad_key(checkpoint, key,
                       fmt::format("is {}, must be between 1 and {}", values->front(), kMaxExtent));
    return values->front();
}

Result<RopeScaling> read_scaling(const Checkpoint& checkpoint, std::int64_t context) {
    RopeScaling scaling;
    const auto type = checkpoint.arch_string("rope.scaling.type");
    if (!type) return type.error();
    // Files made before rope.scaling.type carry a linear factor alone.
    const auto old_linear = float_or(checkpoint, "rope.scale_linear", 0.0);
    if (!old_linear) return old_linear.error();
    const auto factor = float_or(checkpoint, "rope.scaling.factor", 1.0);
    if (!factor) return factor.error();
    if (!(*factor > 0) || !std::isfinite(*factor))
        return bad_key(checkpoint, "rope.scaling.factor",
                       fmt::format("is {}, must be above 0", *factor));
    if (!type->has_value()) {
        const double linear = *old_linear > 0 ? *old_linear : *factor;
        if (linear != 1.0) scaling = {.kind = RopeScalingKind::kLinear, .factor = linear};
        return scaling;
    }
    const std::string& name = **type;
    if (name == "none" || name.empty()) return scaling;
    scaling.factor = *factor;
    const auto attention = float_or(checkpoint, "rope.scaling.attn_factor", 1.0);
    if (!attention) return attention.error();
    scaling.attention_factor = *attention;
    if (name == "linear") {
        scaling.kind = RopeScalingKind::kLinear;
        return scaling;
    }
    if (name == "longrope") {
        return Error{ErrorCode::kUnsupported,
                     fmt::format("{}: {}.rope.scaling.type \"longrope\" is not supported",
                                 checkpoint.path, checkpoint.architecture),
                     "rope.scaling.type"};
    }
    if (name != "yarn")
        return Error{ErrorCode::kUnsupported,
                     fmt::format("{}: {}.rope.scaling.type \"{}\" is not known; known are: none, "
                                 "linear, yarn",
                                 checkpoint.path, checkpoint.architecture, name),
                     "rope.scaling.type"};
    scaling.kind = RopeScalingKind::kYarn;
    const auto original = int_or(checkpoint, "rope.scaling.original_context_length", context);
    const auto fast = float_or(checkpoint, "rope.scaling.yarn_beta_fast", 32.0);
    const auto slow = float_or(checkpoint, "rope.scaling.yarn_beta_slow", 1.0);
    if (!original) return original.error();
    if (!fast) return fast.error();
    if (!slow) return slow.error();
    if (*original < 1)
        return bad_key(checkpoint, "rope.scaling.original_context_length",
                       fmt::format("is {}, must be at least 1", *original));
    scaling.original_context = static_cast<double>(*original);
    scaling.beta_fast = *fast;
    scaling.beta_slow = *slow;
    // YaRN's temperature (section 3.4); a factor in the file comes on top of it.
    scaling.attention_factor *= 1.0 + 0.1 * std::log(scaling.factor);
    return scaling;
}

Result<RopeSpec> read_rope(const Checkpoint& checkpoint, const DecoderSpec& spec,
                           kernels::RopeStyle style) {
    RopeSpec rope{.style = style};
    const auto rotary = int_or(checkpoint, "rope.dimension_count", spec.head_dim);
    if (!rotary) return rotary.error();
    if (*rotary < 2 || *rotary > spec.head_dim || *rotary % 2 != 0)
        return bad_key(checkpoint, "rope.dimension_count",
                       fmt::format("is {}, must be even and at most the head size {}", *rotary,
                                   spec.head_dim));
    rope.rotary_dim = *rotary;
    const auto freq_base = float_or(checkpoint, "rope.freq_base", 10000.0);
    if (!freq_base) return freq_base.error();
    if (!(*freq_base > 0) || !std::isfinite(*freq_base))
        return bad_key(checkpoint, "rope.freq_base",
                       fmt::format("is {}, must be above 0", *freq_base));
    rope.freq_base = *freq_base;
    auto scaling = read_scaling(checkpoint, spec.context_length);
    if (!scaling) return scaling.error();
    rope.scaling = *scaling;
    return rope;
}

base::Status read_heads(const Checkpoint& checkpoint, DecoderSpec& spec) {
    const auto heads = read_uniform_size(checkpoint, "attention.head_count", 0);
    if (!heads) return heads.error();
    const auto kv_heads = read_uniform_size(checkpoint, "attention.head_count_kv", *heads);
    if (!kv_heads) return kv_heads.error();
    if (*heads % *kv_heads != 0)
        return bad_key(checkpoint, "attention.head_count_kv",
                       fmt::format("is {}, must divide the {} heads", *kv_heads, *heads));
    const auto key = int_or(checkpoint, "attention.key_length", spec.hidden / *heads);
    if (!key) return key.error();
    const auto value = int_or(checkpoint, "attention.value_length", *key);
    if (!value) return value.error();
    if (*key != *value)
        return Error{ErrorCode::kUnsupported,
                     fmt::format("{}: keys of size {} with values of size {} are not supported",
                                 checkpoint.path, *key, *value),
                     "attention.value_length"};
    if (*key < 16 || *key > 256 || *key % 16 != 0)
        return Error{ErrorCode::kUnsupported,
                     fmt::format("{}: a head size of {} is not supported; supported are "
                                 "multiples of 16 from 16 to 256",
                                 checkpoint.path, *key),
                     "attention.key_length"};
    spec.heads = *heads;
    spec.kv_heads = *kv_heads;
    spec.head_dim = *key;
    return {};
}

}  // namespace

Result<std::int64_t> int_or(const Checkpoint& checkpoint, std::string_view key,
                            std::int64_t fallback) {
    const auto value = checkpoint.arch_int(key);
    if (!value) return value.error();
    return value->value_or(fallback);
}

Result<double> float_or(const Checkpoint& checkpoint, std::string_view key, double fallback) {
    const auto value = checkpoint.arch_float(key);
    if (!value) return value.error();
    return value->value_or(fallback);
}

Result<DecoderSpec> read_sizes(const Checkpoint& checkpoint, kernels::RopeStyle style) {
    DecoderSpec spec;
    spec.architecture = checkpoint.architecture;
    const auto layers = read_size(checkpoint, "block_count", kMaxLayers);
    const auto hidden = read_size(checkpoint, "embedding_length", kMaxExtent);
    const auto context = read_size(checkpoint, "context_length", kMaxContext);
    if (!layers) return layers.error();
    if (!hidden) return hidden.error();
    if (!context) return context.error();
    spec.layers.resize(static_cast<std::size_t>(*layers));
    spec.hidden = *hidden;
    spec.context_length = *context;
    const auto ffn = read_uniform_size(checkpoint, "feed_forward_length", 0);
    if (!ffn) return ffn.error();
    spec.ffn = *ffn;
    if (const auto heads = read_heads(checkpoint, spec); !heads) return heads.error();

    const auto epsilon = checkpoint.arch_float("attention.layer_norm_rms_epsilon");
    if (!epsilon) return epsilon.error();
    if (!epsilon->has_value())
        return bad_key(checkpoint, "attention.layer_norm_rms_epsilon", "is missing");
    spec.norm_epsilon = static_cast<float>(**epsilon);
    if (!(spec.norm_epsilon >= 0) || spec.norm_epsilon > 1)
        return bad_key(checkpoint, "attention.layer_norm_rms_epsilon",
                       fmt::format("is {}, must be between 0 and 1", **epsilon));
    spec.attention_scale = 1.0F / std::sqrt(static_cast<float>(spec.head_dim));

    auto rope = read_rope(checkpoint, spec, style);
    if (!rope) return rope.error();
    spec.ropes.push_back(*rope);

    const formats::CheckpointTensor* embedding = checkpoint.find_tensor("token_embd.weight");
    if (embedding == nullptr)
        return Error{ErrorCode::kDataLoss,
                     fmt::format("{}: tensor token_embd.weight is missing (a vocabulary-only file "
                                 "can't be run)",
                                 checkpoint.path),
                     "token_embd.weight"};
    spec.vocab = embedding->view.rows();
    if (checkpoint.tokenizer &&
        static_cast<std::int64_t>(checkpoint.tokenizer->tokens.size()) > spec.vocab)
        return Error{ErrorCode::kDataLoss,
                     fmt::format("{}: the tokenizer has {} tokens, token_embd.weight only {} rows",
                                 checkpoint.path, checkpoint.tokenizer->tokens.size(), spec.vocab),
                     "tokenizer.ggml.tokens"};
    return spec;
}

}  // namespace pagoda::model::arch
