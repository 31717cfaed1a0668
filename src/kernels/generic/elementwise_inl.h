#pragma once
// Value by value over a vector policy. Internal linkage.

#include <cstdint>

#include "kernels/args.h"
#include "kernels/generic/exp_inl.h"

namespace pagoda::kernels {
namespace {  // NOLINT(google-build-namespaces): internal linkage is the point

template <class V>
void soft_cap_values(const SoftCapArgs& args) {
    const typename V::F cap = V::set1(args.cap);
    const auto step = [&](std::int64_t i, std::int64_t n) __attribute__((always_inline)) {
        const typename V::F share = V::div(V::load_n(args.x + i, n), cap);
        V::store_n(args.x + i, n, V::mul(cap, tanh<V>(share)));
    };
    std::int64_t i = 0;
    for (; i + V::kLanes <= args.count; i += V::kLanes) step(i, V::kLanes);
    if (i < args.count) step(i, args.count - i);
}

template <class V>
void add_values(const AddArgs& args) {
    std::int64_t i = 0;
    for (; i + V::kLanes <= args.count; i += V::kLanes)
        V::store(args.x + i, V::add(V::load(args.x + i), V::load(args.y + i)));
    for (; i < args.count; ++i) args.x[i] += args.y[i];
}

}  // namespace
}  // namespace pagoda::kernels
