#pragma once
// Where a K or V value stands inside a KV block (the layout is drawn at PagedKvView in args.h).
// Everything has internal linkage, so that each variant compiles its own copy.

#include <cstddef>
#include <cstdint>

#include "kernels/args.h"
#include "kernels/kv_format.h"

namespace pagoda::kernels {
namespace {  // NOLINT(google-build-namespaces): internal linkage is the point

inline constexpr int kKeysPerRun = 16;  // consecutive tokens whose K values stand side by side

// Bytes of the values of one KV head's K (or V) in a block; its scales begin there.
constexpr std::size_t kv_values_bytes(KvDType dtype, std::int64_t head_dim) {
    return static_cast<std::size_t>(kBlockTokens) * static_cast<std::size_t>(head_dim) *
           static_cast<std::size_t>(kv_format(dtype).value_bits) / 8;
}

// The same with the scales.
constexpr std::size_t kv_part_bytes(KvDType dtype, std::int64_t head_dim) {
    return kv_values_bytes(dtype, head_dim) +
           static_cast<std::size_t>(kBlockTokens * kv_format(dtype).scale_bytes);
}

inline const std::byte* k_part(const PagedKvView& kv, std::int32_t block, std::int32_t head) {
    return kv.data + static_cast<std::size_t>(block) * kv.block_bytes +
           static_cast<std::size_t>(head) * kv_part_bytes(kv.dtype, kv.head_dim);
}

inline const std::byte* v_part(const PagedKvView& kv, std::int32_t block, std::int32_t head) {
    return k_part(kv, block, kv.kv_heads + head);
}

// The scales [kBlockTokens] of a part.
inline const float* kv_scales(KvDType dtype, const std::byte* part, std::int64_t head_dim) {
    return reinterpret_cast<const float*>(part + kv_values_bytes(dtype, head_dim));
}
inline float* kv_scales(KvDType dtype, std::byte* part, std::int64_t head_dim) {
    return reinterpret_cast<float*>(part + kv_values_bytes(dtype, head_dim));
}

// Offsets in values from the start of a part.
inline std::size_t k_offset(KvDType dtype, std::int32_t head_dim, std::int32_t slot,
                            std::int32_t dim) {
    const auto n = static_cast<std::size_t>(kv_format(dtype).lane_values);
    const auto run = static_cast<std::size_t>(slot / kKeysPerRun);
    const auto lane = static_cast<std::size_t>(slot % kKeysPerRun);
    const auto d = static_cast<std::size_t>(dim);
    const auto dims = static_cast<std::size_t>(head_dim);
    return ((run * (dims / n) + d / n) * kKeysPerRun + lane) * n + d % n;
}

inline std::size_t v_offset(KvDType dtype, std::int32_t head_dim, std::int32_t slot,
                            std::int32_t dim) {
    const auto n = static_cast<std::size_t>(kv_format(dtype).lane_values);
    const auto s = static_cast<std::size_t>(slot);
    const auto d = static_cast<std::size_t>(dim);
    const auto dims = static_cast<std::size_t>(head_dim);
    return (s / n * dims + d) * n + s % n;
}

}  // namespace
}  // namespace pagoda::kernels
