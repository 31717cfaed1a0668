// Qwen 2 and 2.5 (biases on q, k and v) and Qwen 3 (norms on the heads of q and k).

#include <fmt/core.h>

#include "model/arch/arch.h"

namespace pagoda::model::arch {
namespace {

DecoderSpec read_qwen(Hyperparameters& keys) {
    DecoderSpec spec = read_sizes(keys, kernels::RopeStyle::kHalves);
    // Which layers a Qwen window is meant for is not in the file.
    if (const std::int64_t window = read_window(keys, spec.context_length); window != 0)
        keys.refuse("attention.sliding_window",
                    fmt::format("of {} is not supported; only 0, or at least the context of {}, is",
                                window, spec.context_length),
                    base::ErrorCode::kUnsupported);
    return spec;
}

}  // namespace

DecoderSpec read_qwen2(Hyperparameters& keys) {
    DecoderSpec spec = read_qwen(keys);
    spec.qkv_bias = Presence::kAlways;
    return spec;
}

DecoderSpec read_qwen3(Hyperparameters& keys) {
    DecoderSpec spec = read_qwen(keys);
    spec.qk_norm = Presence::kAlways;
    return spec;
}

}  // namespace pagoda::model::arch
