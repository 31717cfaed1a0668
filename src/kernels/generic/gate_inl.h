#pragma once
// Gated activations over a vector policy. Internal linkage.

#include <cstdint>

#include "kernels/args.h"
#include "kernels/generic/exp_inl.h"

namespace pagoda::kernels {
namespace {  // NOLINT(google-build-namespaces): internal linkage is the point

template <class V>
struct Silu {
    using F = typename V::F;
    [[gnu::always_inline]] F operator()(F x) const {
        const F power = exp<V>(V::sub(V::zero(), x));
        return V::div(x, V::add(power, V::set1(1.0F)));
    }
};

// 0.5 x (1 + tanh u) = x / (1 + e^-2u), u = sqrt(2 / pi) (x + 0.044715 x^3)
template <class V>
struct GeluTanh {
    using F = typename V::F;
    [[gnu::always_inline]] F operator()(F x) const {
        const F cubic = V::fma(V::mul(x, x), V::set1(0.044715F), V::set1(1.0F));
        const F exponent = V::mul(V::mul(x, cubic), V::set1(-1.5957691216F));
        return V::div(x, V::add(exp<V>(exponent), V::set1(1.0F)));
    }
};

// x times the normal distribution: 1 - e for positive and e for negative x, where
// e = erfc(|x| / sqrt 2) / 2
template <class V>
struct GeluErf {
    using F = typename V::F;
    [[gnu::always_inline]] F operator()(F x) const {
        const F z = V::mul(V::abs(x), V::set1(0.70710678F));
        const F tail = V::mul(erfc_positive<V>(z), V::set1(0.5F));
        const F share = V::select_less(x, V::zero(), tail, V::sub(V::set1(1.0F), tail));
        return V::mul(x, share);
    }
};

template <class V, class Activation>
void gate_values(const GateArgs& args, const Activation& activation) {
    const auto step = [&](std::int64_t i, std::int64_t n) __attribute__((always_inline)) {
        const typename V::F activated = activation(V::load_n(args.gate + i, n));
        if (args.up == nullptr) {
            V::store_n(args.out + i, n, activated);
        } else {
            V::store_n(args.out + i, n, V::mul(activated, V::load_n(args.up + i, n)));
        }
    };
    std::int64_t i = 0;
    for (; i + V::kLanes <= args.count; i += V::kLanes) step(i, V::kLanes);
    if (i < args.count) step(i, args.count - i);
}

template <class V>
void gate_any(const GateArgs& args) {
    switch (args.kind) {
        case GateKind::kSilu:
            return gate_values<V>(args, Silu<V>());
        case GateKind::kGeluTanh:
            return gate_values<V>(args, GeluTanh<V>());
        case GateKind::kGeluErf:
            return gate_values<V>(args, GeluErf<V>());
    }
}

}  // namespace
}  // namespace pagoda::kernels
