// Writes K and V of tokens into their slots. Specification: f32 values are copied, bf16 values
// rounded to nearest even (NaN stays NaN), int8 codes and their scale as KvDType has it. Only the
// bytes of the named slots are written, so that rows of one block may be written by different
// threads.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/args.h"
#include "kernels/generic/kv_layout_inl.h"
#include "tensor/half.h"

namespace pagoda::kernels::ref {
namespace {

using OffsetIn = std::size_t (*)(KvDType, std::int32_t, std::int32_t, std::int32_t);

void write_int8(const PagedKvView& kv, std::byte* part, const float* values, std::int32_t slot,
                OffsetIn offset) {
    float largest = 0;
    bool is_finite = true;
    for (std::int32_t d = 0; d < kv.head_dim; ++d) {
        is_finite = is_finite && std::isfinite(values[d]);
        largest = std::max(largest, std::abs(values[d]));
    }
    const bool has_codes = is_finite && largest >= kTinyKv;
    for (std::int32_t d = 0; d < kv.head_dim; ++d) {
        const float code = has_codes ? std::nearbyint(values[d] * (127.0F / largest)) : 0.0F;
        reinterpret_cast<std::int8_t*>(part)[offset(kv.dtype, kv.head_dim, slot, d)] =
            static_cast<std::int8_t>(code);
    }
    float& scale = kv_scales(kv.dtype, part, kv.head_dim)[slot];
    scale = has_codes ? largest / 127.0F : 0.0F;
    if (!is_finite) scale = std::numeric_limits<float>::quiet_NaN();
}

void write_part(const PagedKvView& kv, std::byte* part, const float* values, std::int32_t slot,
                OffsetIn offset) {
    if (kv.dtype == KvDType::kInt8) return write_int8(kv, part, values, slot, offset);
    for (std::int32_t d = 0; d < kv.head_dim; ++d) {
        const std::size_t at = offset(kv.dtype, kv.head_dim, slot, d);
        if (kv.dtype == KvDType::kF32) {
            reinterpret_cast<float*>(part)[at] = values[d];
        } else {
            reinterpret_cast<std::uint16_t*>(part)[at] = tensor::float_to_bf16(values[d]);
        }
    }
}

}  // namespace

void kv_write(const KvWriteArgs& args) noexcept {
    const PagedKvView& kv = args.kv;
    const std::size_t part_bytes = kv_part_bytes(kv.dtype, kv.head_dim);
    for (std::int64_t row = 0; row < args.rows; ++row) {
        std::byte* block = kv.data + static_cast<std::size_t>(args.blocks[row]) * kv.block_bytes;
        for (std::int32_t head = 0; head < kv.kv_heads; ++head) {
            std::byte* k = block + static_cast<std::size_t>(head) * part_bytes;
            std::byte* v = k + static_cast<std::size_t>(kv.kv_heads) * part_bytes;
            const std::int64_t column = std::int64_t{head} * kv.head_dim;
            write_part(kv, k, args.k + row * args.k_stride + column, args.slots[row], k_offset);
            write_part(kv, v, args.v + row * args.v_stride + column, args.slots[row], v_offset);
        }
    }
}

}  // namespace pagoda::kernels::ref
