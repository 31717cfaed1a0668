#include "kernels/group_fields.h"

#include <cstring>

#include "tensor/quant_block.h"

namespace pagoda::kernels {
namespace {

constexpr int kGroup = 32;
constexpr std::uint16_t kHalfSign = 0x8000;

void set_both(std::int8_t (&halves)[2], int value) {
    halves[0] = halves[1] = static_cast<std::int8_t>(value);
}
void set_both(std::uint8_t (&halves)[2], int value) {
    halves[0] = halves[1] = static_cast<std::uint8_t>(value);
}
std::uint8_t byte(int value) {
    return static_cast<std::uint8_t>(value);
}

// The pair layout: value v of 32 is the low half of byte v, or the high half of byte v - 16.
void set_pair_codes(GroupFields& out, const std::uint8_t* qs) {
    for (int v = 0; v < kGroup / 2; ++v) {
        out.code[v] = byte(qs[v] & 15);
        out.code[v + kGroup / 2] = byte(qs[v] >> 4);
    }
}

// Pair codes with a fifth bit each.
void set_five_bit_codes(GroupFields& out, const std::uint8_t* qs, const std::uint8_t* qh) {
    set_pair_codes(out, qs);
    for (int v = 0; v < kGroup; ++v)
        out.code[v] = byte(out.code[v] | ((qh[v / 8] >> (v % 8)) & 1) << 4);
}

void fields(GroupFields& out, const tensor::BlockQ4_0& block) {
    set_pair_codes(out, block.qs);
    out.scale = block.d;
}

void fields(GroupFields& out, const tensor::BlockQ4_1& block) {
    set_pair_codes(out, block.qs);
    out.scale = block.d;
    out.minimum = block.m;
}

void fields(GroupFields& out, const tensor::BlockQ5_0& block) {
    set_five_bit_codes(out, block.qs, block.qh);
    out.scale = block.d;
}

void fields(GroupFields& out, const tensor::BlockQ5_1& block) {
    set_five_bit_codes(out, block.qs, block.qh);
    out.scale = block.d;
    out.minimum = block.m;
}

void fields(GroupFields& out, const tensor::BlockQ8_0& block) {
    for (int v = 0; v < kGroup; ++v) out.code[v] = byte(block.qs[v] + 128);
    out.scale = block.d;
}

void fields(GroupFields& out, const tensor::BlockIQ4_NL& block) {
    set_pair_codes(out, block.qs);
    out.scale = block.d;
}

void fields(GroupFields& out, const tensor::BlockMXFP4& block) {
    set_pair_codes(out, block.qs);
    // 2^(e - 128) in bf16; the two smallest are subnormal.
    out.scale = static_cast<std::uint16_t>(block.e >= 2 ? (block.e - 1) << 7 : 0x20 << block.e);
}

// Two bits of value l: the run layout of Q2_K and Q3_K.
int run_code(const std::uint8_t* qs, int group, int l) {
    return qs[32 * (group / 4) + l] >> (2 * (group % 4)) & 3;
}

void fields(GroupFields& out, const tensor::BlockQ2_K& block, int group) {
    for (int l = 0; l < kGroup; ++l) out.code[l] = byte(run_code(block.qs, group, l));
    for (int half = 0; half < 2; ++half) {
        const std::uint8_t packed = block.scales[2 * group + half];
        out.half_scale[half] = static_cast<std::int8_t>(packed & 15);
        out.half_minimum[half] = byte(packed >> 4);
    }
    out.scale = block.d;
    out.minimum = block.dmin ^ kHalfSign;
}

int q3_scale(const std::uint8_t* scales, int half) {
    const int low = half < 8 ? scales[half] & 15 : scales[half - 8] >> 4;
    const int high = scales[8 + half % 4] >> (2 * (half / 4)) & 3;
    return (low | high << 4) - 32;
}

void fields(GroupFields& out, const tensor::BlockQ3_K& block, int group) {
    for (int l = 0; l < kGroup; ++l)
        out.code[l] = byte(run_code(block.qs, group, l) | (block.hmask[l] >> group & 1) << 2);
    for (int half = 0; half < 2; ++half)
        out.half_scale[half] = static_cast<std::int8_t>(q3_scale(block.scales, 2 * group + half));
    out.scale = block.d;
}

// The twelve packed bytes of Q4_K and Q5_K.
template <class Block>
void set_k_scales(GroupFields& out, const Block& block, int group) {
    const std::uint8_t* packed = block.scales;
    int scale = packed[group] & 63;
    int minimum = packed[group + 4] & 63;
    if (group >= 4) {
        scale = (packed[group + 4] & 15) | (packed[group - 4] >> 6) << 4;
        minimum = (packed[group + 4] >> 4) | (packed[group] >> 6) << 4;
    }
    set_both(out.half_scale, scale);
    set_both(out.half_minimum, minimum);
    out.scale = block.d;
    out.minimum = block.dmin ^ kHalfSign;
}

// Four bits of value l: the K nibble layout.
int k_nibble(const std::uint8_t* qs, int group, int l) {
    return qs[32 * (group / 2) + l] >> (4 * (group % 2)) & 15;
}

void fields(GroupFields& out, const tensor::BlockQ4_K& block, int group) {
    for (int l = 0; l < kGroup; ++l) out.code[l] = byte(k_nibble(block.qs, group, l));
    set_k_scales(out, block, group);
}

void fields(GroupFields& out, const tensor::BlockQ5_K& block, int group) {
    for (int l = 0; l < kGroup; ++l)
        out.code[l] = byte(k_nibble(block.qs, group, l) | (block.qh[l] >> group & 1) << 4);
    set_k_scales(out, block, group);
}

void fields(GroupFields& out, const tensor::BlockQ6_K& block, int group) {
    const int half_block = group / 4;
    const int run = group % 4;
    for (int l = 0; l < kGroup; ++l) {
        const int low = block.ql[64 * half_block + 32 * (run % 2) + l] >> (4 * (run / 2)) & 15;
        const int high = block.qh[32 * half_block + l] >> (2 * run) & 3;
        out.code[l] = byte(low | high << 4);
    }
    for (int half = 0; half < 2; ++half) out.half_scale[half] = block.scales[2 * group + half];
    out.scale = block.d;
}

void fields(GroupFields& out, const tensor::BlockIQ4_XS& block, int group) {
    set_pair_codes(out, block.qs + 16 * group);
    const int low = block.scales_l[group / 2] >> (4 * (group % 2)) & 15;
    const int high = block.scales_h >> (2 * group) & 3;
    set_both(out.half_scale, (low | high << 4) - 32);
    out.scale = block.d;
}

template <class Block>
GroupFields read(const std::byte* row, std::int64_t group) {
    constexpr int kGroups = Block::kValues / kGroup;
    Block block;
    std::memcpy(&block, row + static_cast<std::size_t>(group / kGroups) * sizeof(Block),
                sizeof(Block));
    GroupFields out;
    if constexpr (kGroups == 1) {
        fields(out, block);
    } else {
        fields(out, block, static_cast<int>(group % kGroups));
    }
    return out;
}

}  // namespace

GroupFields group_fields(tensor::DType dtype, const std::byte* row, std::int64_t group) {
    using tensor::DType;
    switch (dtype) {
        case DType::kQ4_0:
            return read<tensor::BlockQ4_0>(row, group);
        case DType::kQ4_1:
            return read<tensor::BlockQ4_1>(row, group);
        case DType::kQ5_0:
            return read<tensor::BlockQ5_0>(row, group);
        case DType::kQ5_1:
            return read<tensor::BlockQ5_1>(row, group);
        case DType::kQ8_0:
            return read<tensor::BlockQ8_0>(row, group);
        case DType::kIQ4_NL:
            return read<tensor::BlockIQ4_NL>(row, group);
        case DType::kMXFP4:
            return read<tensor::BlockMXFP4>(row, group);
        case DType::kQ2_K:
            return read<tensor::BlockQ2_K>(row, group);
        case DType::kQ3_K:
            return read<tensor::BlockQ3_K>(row, group);
        case DType::kQ4_K:
            return read<tensor::BlockQ4_K>(row, group);
        case DType::kQ5_K:
            return read<tensor::BlockQ5_K>(row, group);
        case DType::kQ6_K:
            return read<tensor::BlockQ6_K>(row, group);
        case DType::kIQ4_XS:
            return read<tensor::BlockIQ4_XS>(row, group);
        default:
            return {};
    }
}

}  // namespace pagoda::kernels
