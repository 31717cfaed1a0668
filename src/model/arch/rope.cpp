// rope.*: dimensions, base and scaling. A factor of llama3's kind comes as the tensor
// rope_freqs.weight instead, which weights.cpp binds.

#include <cmath>

#include <fmt/core.h>

#include "formats/gguf_types.h"
#include "model/arch/arch.h"

namespace pagoda::model::arch {
namespace {

constexpr FloatRange kFactor = {1e-3, 1e6};
constexpr FloatRange kAttentionFactor = {1e-3, 1e3};
constexpr FloatRange kBeta = {1e-3, 1e6};

// All of rope.scaling.*, and the key that older files have in its place.
struct ScalingKeys {
    std::string type;
    std::optional<double> factor;
    std::int64_t original_context = 0;
    double attention_factor = 1.0;
    double beta_fast = 32.0, beta_slow = 1.0;
};

// Stretching by rope.scaling.factor, or by rope.scale_linear of older files (0: none there).
std::optional<double> read_factor(Hyperparameters& keys) {
    const auto factor = keys.find_float("rope.scaling.factor", kFactor);
    const double linear = keys.float_or("rope.scale_linear", 0.0, {0.0, kFactor.most});
    if (linear == 0.0) return factor;
    if (linear < kFactor.least)
        keys.refuse("rope.scale_linear",
                    fmt::format("is {}, must be 0 or at least {}", linear, kFactor.least));
    if (factor && *factor != linear)
        keys.refuse("rope.scale_linear",
                    fmt::format("is {}, but rope.scaling.factor is {}", linear, *factor));
    return linear;
}

ScalingKeys read_scaling_keys(Hyperparameters& keys, std::int64_t context) {
    return {.type = keys.string_or_empty("rope.scaling.type"),
            .factor = read_factor(keys),
            .original_context =
                keys.int_or("rope.scaling.original_context_length", context, {1, kMaxContext}),
            .attention_factor = keys.float_or("rope.scaling.attn_factor", 1.0, kAttentionFactor),
            .beta_fast = keys.float_or("rope.scaling.yarn_beta_fast", 32.0, kBeta),
            .beta_slow = keys.float_or("rope.scaling.yarn_beta_slow", 1.0, kBeta)};
}

RopeScaling yarn(Hyperparameters& keys, const ScalingKeys& read, double freq_base) {
    const double factor = read.factor.value_or(1.0);
    if (factor < 1.0)
        keys.refuse("rope.scaling.factor",
                    fmt::format("is {}, must be at least 1 for yarn", factor));
    if (read.beta_fast < read.beta_slow)
        keys.refuse("rope.scaling.yarn_beta_fast",
                    fmt::format("is {}, must not be below yarn_beta_slow of {}", read.beta_fast,
                                read.beta_slow));
    if (!(freq_base > 1.0))
        keys.refuse("rope.freq_base", fmt::format("is {}, must be above 1 for yarn", freq_base));
    return {.kind = RopeScalingKind::kYarn,
            .factor = factor,
            .original_context = static_cast<double>(read.original_context),
            // The temperature of section 3.4; a factor in the file comes on top of it.
            .attention_factor = read.attention_factor * (1.0 + 0.1 * std::log(factor)),
            .beta_fast = read.beta_fast,
            .beta_slow = read.beta_slow};
}

RopeScaling read_scaling(Hyperparameters& keys, std::int64_t context, double freq_base) {
    const ScalingKeys read = read_scaling_keys(keys, context);
    if (!read.type.empty() && read.type != "none" && read.type != "linear" && read.type != "yarn")
        keys.refuse("rope.scaling.type",
                    fmt::format("is \"{}\", which is not supported; supported are: none, linear, "
                                "yarn",
                                formats::printable(read.type)),
                    base::ErrorCode::kUnsupported);
    const bool needs_factor = read.type == "linear" || read.type == "yarn";
    if (needs_factor && !read.factor)
        keys.refuse("rope.scaling.factor",
                    fmt::format("is missing, rope.scaling.type is \"{}\"", read.type));
    const double factor = read.factor.value_or(1.0);
    if (read.type == "none" && factor != 1.0)
        keys.refuse("rope.scaling.type",
                    fmt::format("is \"none\", but the scaling factor is {}", factor));
    if (read.type == "yarn") return yarn(keys, read, freq_base);
    return {.kind = factor == 1.0 ? RopeScalingKind::kNone : RopeScalingKind::kLinear,
            .factor = factor,
            .attention_factor = read.attention_factor};
}

}  // namespace

RopeSpec read_rope(Hyperparameters& keys, const DecoderSpec& sizes, kernels::RopeStyle style,
                   std::string_view other_base) {
    RopeSpec rope{.style = style};
    rope.rotary_dim = keys.int_or("rope.dimension_count", sizes.head_dim, {2, sizes.head_dim});
    if (rope.rotary_dim % 2 != 0)
        keys.refuse("rope.dimension_count", fmt::format("is {}, must be even", rope.rotary_dim));
    rope.freq_base = keys.float_of_either("rope.freq_base", other_base, 10000.0, kFreqBase);
    rope.scaling = read_scaling(keys, sizes.context_length, rope.freq_base);
    return rope;
}

}  // namespace pagoda::model::arch
