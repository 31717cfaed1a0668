#pragma once
// Rotary position embedding over a vector policy; the pairs as in ref/rope.cpp. Internal linkage.

#include <cstdint>

#include "kernels/args.h"

namespace pagoda::kernels {
namespace {  // NOLINT(google-build-namespaces): internal linkage is the point

// cos and sin of one row's pairs.
struct Rotation {
    const float* cos;
    const float* sin;
    std::int64_t pairs;
};

template <class V>
[[gnu::always_inline]] inline void rotate_interleaved(float* x, const Rotation& rotation) {
    constexpr std::int64_t kPairs = V::kLanes / 2;
    for (std::int64_t i = 0; i < rotation.pairs; i += kPairs) {
        const std::int64_t left = rotation.pairs - i;
        const std::int64_t n = left < kPairs ? left : kPairs;
        const typename V::F values = V::load_n(x + 2 * i, 2 * n);
        const typename V::F cos = V::load_twice(rotation.cos + i, n);
        const typename V::F sin = V::load_twice(rotation.sin + i, n);
        const typename V::F crossed = V::mul(V::swap_pairs(values), sin);
        V::store_n(x + 2 * i, 2 * n, V::fma_alternating(values, cos, crossed));
    }
}

template <class V>
[[gnu::always_inline]] inline void rotate_halves(float* x, const Rotation& rotation) {
    float* upper = x + rotation.pairs;
    for (std::int64_t i = 0; i < rotation.pairs; i += V::kLanes) {
        const std::int64_t left = rotation.pairs - i;
        const std::int64_t n = left < V::kLanes ? left : V::kLanes;
        const typename V::F a = V::load_n(x + i, n);
        const typename V::F b = V::load_n(upper + i, n);
        const typename V::F cos = V::load_n(rotation.cos + i, n);
        const typename V::F sin = V::load_n(rotation.sin + i, n);
        V::store_n(x + i, n, V::fnma(b, sin, V::mul(a, cos)));
        V::store_n(upper + i, n, V::fma(a, sin, V::mul(b, cos)));
    }
}

template <class V>
void rotate_rows(const RopeArgs& args) {
    const std::int64_t pairs = args.rotary_dim / 2;
    for (std::int64_t row = 0; row < args.rows; ++row) {
        const Rotation rotation{
            .cos = args.cos + row * pairs, .sin = args.sin + row * pairs, .pairs = pairs};
        for (std::int64_t head = 0; head < args.heads; ++head) {
            float* x = args.x + row * args.row_stride + head * args.head_dim;
            if (args.style == RopeStyle::kInterleaved) {
                rotate_interleaved<V>(x, rotation);
            } else {
                rotate_halves<V>(x, rotation);
            }
        }
    }
}

}  // namespace
}  // namespace pagoda::kernels
