// Rotary position embedding. Specification: a pair (a, b) with angle t becomes
// (a cos t - b sin t, a sin t + b cos t), in float; values past rotary_dim stay as they are.

#include "kernels/args.h"

namespace pagoda::kernels::ref {
namespace {

// Where pair i of a head begins, and how far its second value is.
struct PairLayout {
    std::int64_t step;
    std::int64_t distance;
};

PairLayout pair_layout(const RopeArgs& args) {
    if (args.style == RopeStyle::kInterleaved) return {.step = 2, .distance = 1};
    return {.step = 1, .distance = args.rotary_dim / 2};
}

}  // namespace

void rope(const RopeArgs& args) noexcept {
    const std::int64_t pairs = args.rotary_dim / 2;
    const PairLayout layout = pair_layout(args);
    for (std::int64_t row = 0; row < args.rows; ++row) {
        const float* cos = args.cos + row * pairs;
        const float* sin = args.sin + row * pairs;
        for (std::int64_t head = 0; head < args.heads; ++head) {
            float* x = args.x + row * args.row_stride + head * args.head_dim;
            for (std::int64_t i = 0; i < pairs; ++i) {
                float& first = x[i * layout.step];
                float& second = x[i * layout.step + layout.distance];
                const float a = first;
                const float b = second;
                first = a * cos[i] - b * sin[i];
                second = a * sin[i] + b * cos[i];
            }
        }
    }
}

}  // namespace pagoda::kernels::ref
