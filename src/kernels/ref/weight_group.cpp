#include "kernels/ref/weight_group.h"

#include <bit>
#include <cstring>

#include "tensor/half.h"
#include "tensor/quant_block.h"

namespace pagoda::kernels::ref {
namespace {

using tensor::f16_to_float;

template <class Block>
Block load_block(const std::byte* row, std::int64_t index) {
    Block block;
    std::memcpy(&block, row + static_cast<std::size_t>(index) * sizeof(Block), sizeof(Block));
    return block;
}

// Where group `group` of a row lies in its super-block.
struct Place {
    std::int64_t block;
    int group;  // in the block, 0..7
};
Place place_of(std::int64_t group) {
    constexpr int kGroups = tensor::kSuperBlockValues / kGroup;
    return {group / kGroups, static_cast<int>(group % kGroups)};
}

// The pair layout: value v of 32 is the low half of byte v, or the high half of byte v - 16.
int pair_code(const std::uint8_t* qs, int v) {
    return v < 16 ? qs[v] & 15 : qs[v - 16] >> 4;
}

int fifth_bit(const std::uint8_t* qh, int v) {
    return (qh[v / 8] >> (v % 8)) & 1;
}

WeightGroup group_of(const tensor::BlockQ4_0& block) {
    WeightGroup out;
    for (int v = 0; v < kGroup; ++v) out.code[v] = pair_code(block.qs, v) - 8;
    out.scale = f16_to_float(block.d);
    return out;
}

WeightGroup group_of(const tensor::BlockQ4_1& block) {
    WeightGroup out;
    for (int v = 0; v < kGroup; ++v) out.code[v] = pair_code(block.qs, v);
    out.scale = f16_to_float(block.d);
    out.minimum = f16_to_float(block.m);
    out.has_minimum = true;
    return out;
}

WeightGroup group_of(const tensor::BlockQ5_0& block) {
    WeightGroup out;
    for (int v = 0; v < kGroup; ++v)
        out.code[v] = (pair_code(block.qs, v) | fifth_bit(block.qh, v) << 4) - 16;
    out.scale = f16_to_float(block.d);
    return out;
}

WeightGroup group_of(const tensor::BlockQ5_1& block) {
    WeightGroup out;
    for (int v = 0; v < kGroup; ++v)
        out.code[v] = pair_code(block.qs, v) | fifth_bit(block.qh, v) << 4;
    out.scale = f16_to_float(block.d);
    out.minimum = f16_to_float(block.m);
    out.has_minimum = true;
    return out;
}

WeightGroup group_of(const tensor::BlockQ8_0& block) {
    WeightGroup out;
    for (int v = 0; v < kGroup; ++v) out.code[v] = block.qs[v];
    out.scale = f16_to_float(block.d);
    return out;
}

WeightGroup group_of(const tensor::BlockIQ4_NL& block) {
    WeightGroup out;
    for (int v = 0; v < kGroup; ++v) out.code[v] = tensor::kIq4Values[pair_code(block.qs, v)];
    out.scale = f16_to_float(block.d);
    return out;
}

// 2^(e - 128), exact down to the subnormal 2^-128.
float mxfp4_scale(int e) {
    return e < 2 ? (e == 0 ? 0x1p-128F : 0x1p-127F)
                 : std::bit_cast<float>(static_cast<std::uint32_t>(e - 1) << 23);
}

WeightGroup group_of(const tensor::BlockMXFP4& block) {
    WeightGroup out;
    for (int v = 0; v < kGroup; ++v)
        out.code[v] = tensor::kMxfp4DoubledValues[pair_code(block.qs, v)];
    out.scale = mxfp4_scale(block.e);
    return out;
}

// Two bits of value l of group `group`: the run layout of Q2_K and Q3_K.
int run_code(const std::uint8_t* qs, int group, int l) {
    return qs[32 * (group / 4) + l] >> (2 * (group % 4)) & 3;
}

WeightGroup group_of(const tensor::BlockQ2_K& block, int group) {
    WeightGroup out;
    for (int l = 0; l < kGroup; ++l) out.code[l] = run_code(block.qs, group, l);
    for (int half = 0; half < 2; ++half) {
        out.half_scale[half] = block.scales[2 * group + half] & 15;
        out.half_minimum[half] = block.scales[2 * group + half] >> 4;
    }
    out.scale = f16_to_float(block.d);
    out.minimum = -f16_to_float(block.dmin);
    out.has_minimum = true;
    return out;
}

int q3_scale(const std::uint8_t* scales, int half) {
    const int low = half < 8 ? scales[half] & 15 : scales[half - 8] >> 4;
    const int high = scales[8 + half % 4] >> (2 * (half / 4)) & 3;
    return (low | high << 4) - 32;
}

WeightGroup group_of(const tensor::BlockQ3_K& block, int group) {
    WeightGroup out;
    for (int l = 0; l < kGroup; ++l)
        out.code[l] = (run_code(block.qs, group, l) | (block.hmask[l] >> group & 1) << 2) - 4;
    for (int half = 0; half < 2; ++half)
        out.half_scale[half] = q3_scale(block.scales, 2 * group + half);
    out.scale = f16_to_float(block.d);
    return out;
}

struct ScaleAndMinimum {
    int scale, minimum;
};
// The twelve packed bytes of Q4_K and Q5_K.
ScaleAndMinimum k_scales(const std::uint8_t* scales, int group) {
    if (group < 4) return {scales[group] & 63, scales[group + 4] & 63};
    return {(scales[group + 4] & 15) | (scales[group - 4] >> 6) << 4,
            (scales[group + 4] >> 4) | (scales[group] >> 6) << 4};
}

// Four bits of value l of group `group`: the K nibble layout.
int k_nibble(const std::uint8_t* qs, int group, int l) {
    return qs[32 * (group / 2) + l] >> (4 * (group % 2)) & 15;
}

void set_k_scales(WeightGroup& out, float d, float dmin, ScaleAndMinimum scales) {
    out.scale = d * static_cast<float>(scales.scale);
    out.minimum = -(dmin * static_cast<float>(scales.minimum));
    out.has_minimum = true;
}

WeightGroup group_of(const tensor::BlockQ4_K& block, int group) {
    WeightGroup out;
    for (int l = 0; l < kGroup; ++l) out.code[l] = k_nibble(block.qs, group, l);
    set_k_scales(out, f16_to_float(block.d), f16_to_float(block.dmin),
                 k_scales(block.scales, group));
    return out;
}

WeightGroup group_of(const tensor::BlockQ5_K& block, int group) {
    WeightGroup out;
    for (int l = 0; l < kGroup; ++l)
        out.code[l] = k_nibble(block.qs, group, l) | (block.qh[l] >> group & 1) << 4;
    set_k_scales(out, f16_to_float(block.d), f16_to_float(block.dmin),
                 k_scales(block.scales, group));
    return out;
}

WeightGroup group_of(const tensor::BlockQ6_K& block, int group) {
    WeightGroup out;
    const int half_block = group / 4;
    const int run = group % 4;
    for (int l = 0; l < kGroup; ++l) {
        const int low = block.ql[64 * half_block + 32 * (run % 2) + l] >> (4 * (run / 2)) & 15;
        const int high = block.qh[32 * half_block + l] >> (2 * run) & 3;
        out.code[l] = (low | high << 4) - 32;
    }
    for (int half = 0; half < 2; ++half) out.half_scale[half] = block.scales[2 * group + half];
    out.scale = f16_to_float(block.d);
    return out;
}

WeightGroup group_of(const tensor::BlockIQ4_XS& block, int group) {
    WeightGroup out;
    for (int v = 0; v < kGroup; ++v)
        out.code[v] = tensor::kIq4Values[pair_code(block.qs + 16 * group, v)];
    const int low = block.scales_l[group / 2] >> (4 * (group % 2)) & 15;
    const int high = block.scales_h >> (2 * group) & 3;
    out.scale = f16_to_float(block.d) * static_cast<float>((low | high << 4) - 32);
    return out;
}

template <class Block>
WeightGroup small_group(const std::byte* row, std::int64_t group) {
    return group_of(load_block<Block>(row, group));
}
template <class Block>
WeightGroup super_group(const std::byte* row, std::int64_t group) {
    const Place place = place_of(group);
    return group_of(load_block<Block>(row, place.block), place.group);
}

float plain_value(tensor::DType dtype, const std::byte* row, std::int64_t index) {
    if (dtype == tensor::DType::kF32) {
        float value = 0;
        std::memcpy(&value, row + index * 4, 4);
        return value;
    }
    std::uint16_t bits = 0;
    std::memcpy(&bits, row + index * 2, 2);
    return dtype == tensor::DType::kF16 ? f16_to_float(bits) : tensor::bf16_to_float(bits);
}

}  // namespace

WeightGroup weight_group(tensor::DType dtype, const std::byte* row, std::int64_t group) {
    using tensor::DType;
    switch (dtype) {
        case DType::kQ4_0:
            return small_group<tensor::BlockQ4_0>(row, group);
        case DType::kQ4_1:
            return small_group<tensor::BlockQ4_1>(row, group);
        case DType::kQ5_0:
            return small_group<tensor::BlockQ5_0>(row, group);
        case DType::kQ5_1:
            return small_group<tensor::BlockQ5_1>(row, group);
        case DType::kQ8_0:
            return small_group<tensor::BlockQ8_0>(row, group);
        case DType::kIQ4_NL:
            return small_group<tensor::BlockIQ4_NL>(row, group);
        case DType::kMXFP4:
            return small_group<tensor::BlockMXFP4>(row, group);
        case DType::kQ2_K:
            return super_group<tensor::BlockQ2_K>(row, group);
        case DType::kQ3_K:
            return super_group<tensor::BlockQ3_K>(row, group);
        case DType::kQ4_K:
            return super_group<tensor::BlockQ4_K>(row, group);
        case DType::kQ5_K:
            return super_group<tensor::BlockQ5_K>(row, group);
        case DType::kQ6_K:
            return super_group<tensor::BlockQ6_K>(row, group);
        case DType::kIQ4_XS:
            return super_group<tensor::BlockIQ4_XS>(row, group);
        case DType::kF32:
        case DType::kF16:
        case DType::kBF16:
        case DType::kI8:
        case DType::kI16:
        case DType::kI32:
        case DType::kI64:
        case DType::kF64:
            break;
    }
    return {};
}

void dequantize_run(tensor::DType dtype, const std::byte* row, std::int64_t begin,
                    std::int64_t count, float* out) {
    using tensor::DType;
    if (dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16) {
        for (std::int64_t i = 0; i < count; ++i) out[i] = plain_value(dtype, row, begin + i);
        return;
    }
    for (std::int64_t offset = 0; offset < count; offset += kGroup) {
        const WeightGroup group = weight_group(dtype, row, (begin + offset) / kGroup);
        for (int i = 0; i < kGroup; ++i) {
            const int half = i / kHalf;
            const float product =
                group.scale * static_cast<float>(group.half_scale[half] * group.code[i]);
            out[offset + i] =
                group.has_minimum
                    ? product + group.minimum * static_cast<float>(group.half_minimum[half])
                    : product;
        }
    }
}

}  // namespace pagoda::kernels::ref
