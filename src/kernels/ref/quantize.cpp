#include <cmath>

#include "kernels/ref/quantized_row.h"
#include "kernels/ref/variant.h"

namespace pagoda::kernels::ref {
namespace {

struct GroupScale {
    float scale;    // what a code is worth
    float inverse;  // 0: the group's codes are zeros
};

// The rule of QuantizeArgs (args.h).
GroupScale group_scale(const float* in) {
    float largest = 0;
    for (int i = 0; i < kActivationGroup; ++i) {
        if (!std::isfinite(in[i])) return {std::nanf(""), 0};
        largest = std::fmax(largest, std::fabs(in[i]));
    }
    if (largest < kTinyActivation) return {0, 0};
    return {largest / 127.0F, 127.0F / largest};
}

}  // namespace

std::size_t quantized_row_bytes(std::int64_t cols) {
    const auto groups = static_cast<std::size_t>((cols + kActivationGroup - 1) / kActivationGroup);
    return groups * (kActivationGroup + sizeof(float) + 2 * sizeof(std::int32_t));
}

void quantize(const QuantizeArgs& args) noexcept {
    const std::int64_t groups = args.cols / kActivationGroup;
    for (std::int64_t row = 0; row < args.rows; ++row) {
        std::byte* out = args.out + static_cast<std::size_t>(row) * quantized_row_bytes(args.cols);
        auto* codes = reinterpret_cast<std::int8_t*>(out);
        auto* scales = reinterpret_cast<float*>(out + args.cols);
        auto* half_sums = reinterpret_cast<std::int32_t*>(scales + groups);
        const float* in = args.in + row * args.in_stride;
        for (std::int64_t g = args.col_begin / kActivationGroup;
             g < args.col_end / kActivationGroup; ++g, in += kActivationGroup) {
            const GroupScale group = group_scale(in);
            scales[g] = group.scale;
            std::int32_t sums[2] = {0, 0};
            for (int i = 0; i < kActivationGroup; ++i) {
                const float scaled = group.inverse == 0 ? 0.0F : in[i] * group.inverse;
                const auto code = static_cast<std::int32_t>(std::lrintf(scaled));
                codes[g * kActivationGroup + i] = static_cast<std::int8_t>(code);
                sums[i / 16] += code;
            }
            half_sums[2 * g] = sums[0];
            half_sums[2 * g + 1] = sums[1];
        }
    }
}

}  // namespace pagoda::kernels::ref
