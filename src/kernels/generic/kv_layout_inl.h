#pragma once
// Where a K or V value stands inside a KV block (the layout is drawn at PagedKvView in args.h).
// Everything has internal linkage, so that each variant compiles its own copy.

#include <cstddef>
#include <cstdint>

#include "kernels/args.h"

namespace pagoda::kernels {
namespace {  // NOLINT(google-build-namespaces): internal linkage is the point

inline constexpr int kKeysPerRun = 16;  // consecutive tokens whose K values stand side by side

inline std::size_t kv_value_bytes(KvDType dtype) {
    return dtype == KvDType::kF32 ? 4 : 2;
}

// Values of the K part (or the V part) of one KV head in a block.
inline std::size_t kv_part_values(std::int32_t head_dim) {
    return static_cast<std::size_t>(kBlockTokens) * static_cast<std::size_t>(head_dim);
}

inline const std::byte* k_part(const PagedKvView& kv, std::int32_t block, std::int32_t head) {
    const std::size_t part = kv_part_values(kv.head_dim) * kv_value_bytes(kv.dtype);
    return kv.data + static_cast<std::size_t>(block) * kv.block_bytes +
           static_cast<std::size_t>(head) * part;
}

inline const std::byte* v_part(const PagedKvView& kv, std::int32_t block, std::int32_t head) {
    return k_part(kv, block, kv.kv_heads + head);
}

// Offsets in values from the start of a part.
inline std::size_t k_offset(KvDType dtype, std::int32_t head_dim, std::int32_t slot,
                            std::int32_t dim) {
    const std::size_t run = static_cast<std::size_t>(slot / kKeysPerRun);
    const std::size_t lane = static_cast<std::size_t>(slot % kKeysPerRun);
    const std::size_t d = static_cast<std::size_t>(dim);
    const std::size_t dims = static_cast<std::size_t>(head_dim);
    if (dtype == KvDType::kF32) return (run * dims + d) * kKeysPerRun + lane;
    return ((run * (dims / 2) + d / 2) * kKeysPerRun + lane) * 2 + d % 2;
}

inline std::size_t v_offset(KvDType dtype, std::int32_t head_dim, std::int32_t slot,
                            std::int32_t dim) {
    const std::size_t s = static_cast<std::size_t>(slot);
    const std::size_t d = static_cast<std::size_t>(dim);
    const std::size_t dims = static_cast<std::size_t>(head_dim);
    if (dtype == KvDType::kF32) return s * dims + d;
    return (s / 2 * dims + d) * 2 + s % 2;
}

}  // namespace
}  // namespace pagoda::kernels
