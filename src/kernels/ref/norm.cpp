// Norms. Specification: the sum over a row runs in double, ascending; the factor is rounded to
// float once; each output is two float products (and, for layer_norm, one float sum).

#include <cmath>

#include "kernels/args.h"

namespace pagoda::kernels::ref {

void rms_norm(const RmsNormArgs& args) noexcept {
    for (std::int64_t row = 0; row < args.rows; ++row) {
        const float* in = args.in + row * args.in_stride;
        float* out = args.out + row * args.out_stride;
        double squares = 0;
        for (std::int64_t c = 0; c < args.cols; ++c) {
            squares += static_cast<double>(in[c]) * static_cast<double>(in[c]);
        }
        const double mean = squares / static_cast<double>(args.cols);
        const auto factor = static_cast<float>(1.0 / std::sqrt(mean + args.epsilon));
        for (std::int64_t c = 0; c < args.cols; ++c) out[c] = in[c] * factor * args.weight[c];
    }
}

void layer_norm(const LayerNormArgs& args) noexcept {
    for (std::int64_t row = 0; row < args.rows; ++row) {
        const float* in = args.in + row * args.in_stride;
        float* out = args.out + row * args.out_stride;
        double sum = 0;
        for (std::int64_t c = 0; c < args.cols; ++c) sum += in[c];
        const double mean = sum / static_cast<double>(args.cols);
        double squares = 0;
        for (std::int64_t c = 0; c < args.cols; ++c) {
            squares += (in[c] - mean) * (in[c] - mean);
        }
        const double variance = squares / static_cast<double>(args.cols);
        const auto factor = static_cast<float>(1.0 / std::sqrt(variance + args.epsilon));
        const auto center = static_cast<float>(mean);
        for (std::int64_t c = 0; c < args.cols; ++c) {
            const float bias = args.bias == nullptr ? 0.0F : args.bias[c];
            out[c] = (in[c] - center) * factor * args.weight[c] + bias;
        }
    }
}

}  // namespace pagoda::kernels::ref
