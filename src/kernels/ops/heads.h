#pragma once
// What lies between the products of Q, K and V and attention: norms of the heads, rotation, K and V
// into the cache. One parallel region over the rows. Engine thread only.

#include <cstdint>

#include "kernels/ops/device_context.h"

namespace pagoda::kernels {

struct HeadRows {
    float* q;        // [rows, heads, head_dim], normed and rotated in place
    float* k;        // [rows, kv_heads, head_dim], the same
    const float* v;  // [rows, kv_heads, head_dim]
    std::int64_t rows, heads, kv_heads, head_dim;
    const float* q_norm;  // [head_dim], or null: no norm
    const float* k_norm;
    float norm_epsilon;
    std::int64_t rotary_dim;  // even, <= head_dim
    const float* cos;         // [rows, rotary_dim / 2]
    const float* sin;
    RopeStyle style;
    PagedKvView kv;
    const std::int32_t* blocks;  // [rows] the block of each row's token
    const std::int32_t* slots;   // [rows] its slot there
};

void place_heads(const DeviceContext& device, const HeadRows& heads);

}  // namespace pagoda::kernels
