#pragma once
// Norms over a vector policy. A row's sums run in four interleaved accumulators of kLanes each,
// vector i going to accumulator i mod 4, joined by a fixed tree: the order depends on the number
// of columns alone. Internal linkage.

#include <cstdint>

#include "kernels/args.h"

namespace pagoda::kernels {
namespace {  // NOLINT(google-build-namespaces): internal linkage is the point

// Sum over a row of term(x), where term(0) need not be 0: lanes past the end are dropped.
template <class V, class Term>
[[gnu::always_inline]] inline float sum_row(const float* x, std::int64_t cols, const Term& term) {
    constexpr std::int64_t kLanes = V::kLanes;
    typename V::F sums[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
    std::int64_t c = 0;
    for (; c + 4 * kLanes <= cols; c += 4 * kLanes) {
#pragma GCC unroll 4
        for (int a = 0; a < 4; ++a) sums[a] = V::add(sums[a], term(V::load(x + c + a * kLanes)));
    }
#pragma GCC unroll 4
    for (int a = 0; a < 4; ++a) {
        const std::int64_t left = cols - c - a * kLanes;
        if (left <= 0) break;
        const std::int64_t n = left < kLanes ? left : kLanes;
        const typename V::F value = term(V::load_n(x + c + a * kLanes, n));
        sums[a] = V::add(sums[a], V::keep(value, 0, n, V::zero()));
    }
    return V::reduce_add(V::add(V::add(sums[0], sums[1]), V::add(sums[2], sums[3])));
}

// Calls body(offset, n) for the vectors of a row, the last one with what is left.
template <class V, class Body>
[[gnu::always_inline]] inline void for_vectors(std::int64_t count, const Body& body) {
    std::int64_t c = 0;
    for (; c + V::kLanes <= count; c += V::kLanes) body(c, std::int64_t{V::kLanes});
    if (c < count) body(c, count - c);
}

// 1 / sqrt(sum / cols + epsilon)
template <class V>
[[gnu::always_inline]] inline typename V::F norm_factor(float sum, std::int64_t cols,
                                                        float epsilon) {
    const float mean = sum / static_cast<float>(cols);
    return V::div(V::set1(1.0F), V::sqrt(V::set1(mean + epsilon)));
}

// Squares leave f32 from 1.8e19 on. A row whose sums do is computed at this share of its size, at
// which no sum can, and at which epsilon vanishes beside it.
constexpr float kShrunk = 0x1p-80F;
constexpr float kLargest = 0x1.fffffep127F;

// Norm of a row at `scale` of its size: false, and nothing written, when a sum was not finite.
template <class V>
[[gnu::always_inline]] inline bool rms_norm_row(const RmsNormArgs& args, std::int64_t row,
                                                float scale) {
    using F = typename V::F;
    const float* in = args.in + row * args.in_stride;
    float* out = args.out + row * args.out_stride;
    const F size = V::set1(scale);
    const float squares = sum_row<V>(in, args.cols, [size](F x) {
        const F scaled = V::mul(x, size);
        return V::mul(scaled, scaled);
    });
    if (scale == 1.0F && !(squares <= kLargest)) return false;
    const F factor = norm_factor<V>(squares, args.cols, args.epsilon * scale * scale);
    for_vectors<V>(args.cols, [&](std::int64_t c, std::int64_t n) {
        const F normed = V::mul(V::mul(V::load_n(in + c, n), size), factor);
        V::store_n(out + c, n, V::mul(normed, V::load_n(args.weight + c, n)));
    });
    return true;
}

template <class V>
void rms_norm_rows(const RmsNormArgs& args) {
    for (std::int64_t row = 0; row < args.rows; ++row)
        if (!rms_norm_row<V>(args, row, 1.0F)) rms_norm_row<V>(args, row, kShrunk);
}

template <class V>
[[gnu::always_inline]] inline bool layer_norm_row(const LayerNormArgs& args, std::int64_t row,
                                                  float scale) {
    using F = typename V::F;
    const float* in = args.in + row * args.in_stride;
    float* out = args.out + row * args.out_stride;
    const F size = V::set1(scale);
    const float sum = sum_row<V>(in, args.cols, [size](F x) { return V::mul(x, size); });
    const F mean = V::set1(sum / static_cast<float>(args.cols));
    const float squares = sum_row<V>(in, args.cols, [size, mean](F x) {
        const F centered = V::sub(V::mul(x, size), mean);
        return V::mul(centered, centered);
    });
    if (scale == 1.0F && !(squares <= kLargest)) return false;
    const F factor = norm_factor<V>(squares, args.cols, args.epsilon * scale * scale);
    for_vectors<V>(args.cols, [&](std::int64_t c, std::int64_t n) {
        const F scaled = V::mul(V::sub(V::mul(V::load_n(in + c, n), size), mean), factor);
        const F bias = args.bias == nullptr ? V::zero() : V::load_n(args.bias + c, n);
        V::store_n(out + c, n, V::fma(scaled, V::load_n(args.weight + c, n), bias));
    });
    return true;
}

template <class V>
void layer_norm_rows(const LayerNormArgs& args) {
    for (std::int64_t row = 0; row < args.rows; ++row)
        if (!layer_norm_row<V>(args, row, 1.0F)) layer_norm_row<V>(args, row, kShrunk);
}

}  // namespace
}  // namespace pagoda::kernels
