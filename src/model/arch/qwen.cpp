// Qwen 2 and 2.5 (biases on q, k and v) and Qwen 3 (norms on the heads of q and k).

#include <fmt/core.h>

#include "model/arch/arch.h"

namespace pagoda::model::arch {
namespace {

base::Result<DecoderSpec> read_qwen(const formats::Checkpoint& checkpoint) {
    auto spec = read_sizes(checkpoint, kernels::RopeStyle::kHalves);
    if (!spec) return spec.error();
    const auto window = int_or(checkpoint, "attention.sliding_window", 0);
    if (!window) return window.error();
    // Which layers a Qwen window is meant for is not in the file.
    if (*window != 0 && *window < spec->context_length)
        return base::Error{
            base::ErrorCode::kUnsupported,
            fmt::format("{}: {}.attention.sliding_window of {} is not supported; only 0, or at "
                        "least the context of {}, is",
                        checkpoint.path, checkpoint.architecture, *window, spec->context_length),
            "attention.sliding_window"};
    return spec;
}

}  // namespace

base::Result<DecoderSpec> read_qwen2(const formats::Checkpoint& checkpoint) {
    auto spec = read_qwen(checkpoint);
    if (spec) spec->qkv_bias = Presence::kAlways;
    return spec;
}

base::Result<DecoderSpec> read_qwen3(const formats::Checkpoint& checkpoint) {
    auto spec = read_qwen(checkpoint);
    if (spec) spec->qk_norm = Presence::kAlways;
    return spec;
}

}  // namespace pagoda::model::arch
