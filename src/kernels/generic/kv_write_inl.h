#pragma once
// Walks the rows and heads of a KvWriteArgs; what an instruction set brings are the stores of one
// head of one token: write_k_f32, write_v_f32, write_k_bf16, write_v_bf16, and for int8
// largest_bits and round_int8. Internal linkage.

#include "kernels/generic/kv_layout_inl.h"

namespace pagoda::kernels {
namespace {  // NOLINT(google-build-namespaces): internal linkage is the point

// One head of one token.
struct KvSlot {
    std::byte* part;
    const float* values;
    std::int32_t slot;
    std::int32_t dims;  // a multiple of 16
};

// The codes of one head of one token; returns their scale.
template <class Stores>
float encode_int8(const KvSlot& slot, std::int8_t* codes) {
    constexpr std::uint32_t kInfinityBits = 0x7f800000;
    const std::uint32_t bits = Stores::largest_bits(slot.values, slot.dims);
    const float largest = __builtin_bit_cast(float, bits);
    if (bits >= kInfinityBits || largest < kTinyKv) {
        for (std::int32_t d = 0; d < slot.dims; ++d) codes[d] = 0;
        return bits >= kInfinityBits ? __builtin_nanf("") : 0.0F;
    }
    Stores::round_int8(slot, 127.0F / largest, codes);
    return largest / 127.0F;
}

// Four dims of K are one place of four bytes.
template <class Stores>
void write_k_int8(const KvSlot& slot) {
    std::int8_t codes[kMaxHeadDim];
    kv_scales(KvDType::kInt8, slot.part, slot.dims)[slot.slot] = encode_int8<Stores>(slot, codes);
    std::byte* to = slot.part + k_offset(KvDType::kInt8, slot.dims, slot.slot, 0);
    for (std::int32_t d = 0; d < slot.dims; d += 4)
        __builtin_memcpy(to + d * kKeysPerRun, codes + d, 4);
}

// Of V each such place has one byte of this token.
template <class Stores>
void write_v_int8(const KvSlot& slot) {
    std::int8_t codes[kMaxHeadDim];
    kv_scales(KvDType::kInt8, slot.part, slot.dims)[slot.slot] = encode_int8<Stores>(slot, codes);
    std::byte* to = slot.part + v_offset(KvDType::kInt8, slot.dims, slot.slot, 0);
    for (std::int32_t d = 0; d < slot.dims; ++d) to[4 * d] = static_cast<std::byte>(codes[d]);
}

template <class Stores>
void write_head(KvDType dtype, const KvSlot& k, const KvSlot& v) {
    switch (dtype) {
        case KvDType::kF32:
            Stores::write_k_f32(k);
            Stores::write_v_f32(v);
            return;
        case KvDType::kBF16:
            Stores::write_k_bf16(k);
            Stores::write_v_bf16(v);
            return;
        case KvDType::kInt8:
            write_k_int8<Stores>(k);
            write_v_int8<Stores>(v);
            return;
    }
}

template <class Stores>
void write_slots(const KvWriteArgs& args) {
    const PagedKvView& kv = args.kv;
    const std::size_t part_bytes = kv_part_bytes(kv.dtype, kv.head_dim);
    for (std::int64_t row = 0; row < args.rows; ++row) {
        std::byte* block = kv.data + static_cast<std::size_t>(args.blocks[row]) * kv.block_bytes;
        for (std::int32_t head = 0; head < kv.kv_heads; ++head) {
            const std::int64_t column = std::int64_t{head} * kv.head_dim;
            const KvSlot k{.part = block + static_cast<std::size_t>(head) * part_bytes,
                           .values = args.k + row * args.k_stride + column,
                           .slot = args.slots[row],
                           .dims = kv.head_dim};
            const KvSlot v{.part = k.part + static_cast<std::size_t>(kv.kv_heads) * part_bytes,
                           .values = args.v + row * args.v_stride + column,
                           .slot = args.slots[row],
                           .dims = kv.head_dim};
            write_head<Stores>(kv.dtype, k, v);
        }
    }
}

}  // namespace
}  // namespace pagoda::kernels
