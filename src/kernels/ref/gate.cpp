// Gated activations. Specification: the activation is computed in double and rounded to float
// once, then multiplied by `up` in float.

#include <cmath>
#include <numbers>

#include "kernels/args.h"

namespace pagoda::kernels::ref {
namespace {

float silu(float x) {
    return static_cast<float>(x / (1.0 + std::exp(-static_cast<double>(x))));
}

// 0.5 x (1 + tanh(u)) with u = sqrt(2 / pi) (x + 0.044715 x^3), written without cancellation.
float gelu_tanh(float value) {
    const double x = value;
    const double u = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
    return static_cast<float>(x / (1.0 + std::exp(-2.0 * u)));
}

// x times the normal distribution's cumulative function.
float gelu_erf(float value) {
    const double x = value;
    return static_cast<float>(0.5 * x * std::erfc(-x / std::numbers::sqrt2));
}

float activate(GateKind kind, float x) {
    switch (kind) {
        case GateKind::kSilu:
            return silu(x);
        case GateKind::kGeluTanh:
            return gelu_tanh(x);
        case GateKind::kGeluErf:
            return gelu_erf(x);
    }
    return x;
}

}  // namespace

void gate(const GateArgs& args) noexcept {
    for (std::int64_t i = 0; i < args.count; ++i) {
        const float activated = activate(args.kind, args.gate[i]);
        args.out[i] = args.up == nullptr ? activated : activated * args.up[i];
    }
}

}  // namespace pagoda::kernels::ref
