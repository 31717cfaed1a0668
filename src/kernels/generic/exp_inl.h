#pragma once
// Exponentials over a vector policy. Lanes are independent: a value's result depends neither on
// its lane nor on its neighbours. Internal linkage.

#include <cstdint>

namespace pagoda::kernels {
namespace {  // NOLINT(google-build-namespaces): internal linkage is the point

// sum of coefficients[i] x^i by Horner's rule.
template <class V, int kTerms>
[[gnu::always_inline]] inline typename V::F polynomial(typename V::F x,
                                                       const float (&coefficients)[kTerms]) {
    typename V::F sum = V::set1(coefficients[kTerms - 1]);
#pragma GCC unroll 16
    for (int i = kTerms - 2; i >= 0; --i) sum = V::fma(sum, x, V::set1(coefficients[i]));
    return sum;
}

// e^x within 2 ulp. exp(-inf) = 0, exp(x) = inf above 88.73, subnormal results are rounded once,
// NaN stays NaN, exp(0) = 1 exactly.
// x = n ln 2 + r with |r| <= ln 2 / 2, e^r = 1 + r + r^2 Q(r) with Q fitted at Chebyshev nodes
// (relative error 8e-9 before rounding).
template <class V>
[[gnu::always_inline]] inline typename V::F exp(typename V::F x) {
    using F = typename V::F;
    constexpr float kQ[] = {0x1p-1F, 0x1.5554dcp-3F, 0x1.555518p-5F, 0x1.120be2p-7F,
                            0x1.6d117cp-10F};
    // Below -104 all is 0 and above 89 all is infinite; max and min return NaN when x is one.
    const F bounded = V::min(V::set1(89.0F), V::max(V::set1(-104.0F), x));
    const F n = V::round(V::mul(bounded, V::set1(0x1.715476p+0F)));
    F r = V::fnma(n, V::set1(0x1.62e4p-1F),
                  bounded);  // ln 2 in two parts; n times the first is exact
    r = V::fnma(n, V::set1(0x1.7f7d1cp-20F), r);
    const F q = polynomial<V>(r, kQ);
    const F result = V::add(V::fma(V::mul(r, r), q, r), V::set1(1.0F));
    return V::scale_by_power(result, n);
}

// 2^t for t <= 0 within 2 ulp. 2^0 = 1 exactly, results below 2^-126 are 0, NaN stays NaN.
// t = n + r with 0 <= r < 1, 2^r = 1 + r Q(r) (relative error 1.2e-8 before rounding).
template <class V>
[[gnu::always_inline]] inline typename V::F exp2_nonpositive(typename V::F t) {
    using F = typename V::F;
    constexpr float kP[] = {1.0F,           0x1.62e43p-1F,  0x1.ebfc3ep-3F, 0x1.c69f98p-5F,
                            0x1.3c487cp-7F, 0x1.4cb7bp-10F, 0x1.b49554p-13F};
    const F power = polynomial<V>(V::fraction(t), kP);
    return V::times_power_of_two(power, t);
}

// tanh x within 3 ulp: an odd polynomial near 0, beyond it 1 - 2 / (e^2|x| + 1).
template <class V>
[[gnu::always_inline]] inline typename V::F tanh(typename V::F x) {
    using F = typename V::F;
    constexpr float kP[] = {-0x1.555552p-2F, 0x1.110e1cp-3F, -0x1.b9258ap-5F, 0x1.58048ep-6F,
                            -0x1.8f8de4p-8F};
    const F size = V::abs(x);
    const F square = V::mul(x, x);
    const F near = V::fma(V::mul(x, square), polynomial<V>(square, kP), x);
    const F power = exp<V>(V::add(size, size));
    const F far = V::sub(V::set1(1.0F), V::div(V::set1(2.0F), V::add(power, V::set1(1.0F))));
    return V::select_less(size, V::set1(0.625F), near, V::copy_sign(far, x));
}

// erfc z for z >= 0, relative error below 1e-6 + 3e-7 z^2: e^(-z^2) t P(t) with
// t = 1 / (1 + 0.4 z).
template <class V>
[[gnu::always_inline]] inline typename V::F erfc_positive(typename V::F z) {
    using F = typename V::F;
    constexpr float kP[] = {0x1.ce1aa4p-3F, 0x1.cfb488p-3F,  0x1.9d8abap-3F,
                            0x1.8ce4cap-3F, 0x1.3d9cfep-4F,  0x1.7cb2bap-4F,
                            0x1.402578p-4F, -0x1.183a2ep-3F, 0x1.4b03b4p-5F};
    const F t = V::div(V::set1(1.0F), V::fma(V::set1(0.4F), z, V::set1(1.0F)));
    const F power = exp<V>(V::fnma(z, z, V::zero()));
    return V::mul(power, V::mul(t, polynomial<V>(t, kP)));
}

}  // namespace
}  // namespace pagoda::kernels
