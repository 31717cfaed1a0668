#pragma once
// The blocks of the quantised types, byte for byte as GGUF stores them (little-endian, no padding).
// Plain data for files and kernels alike: no functions and no containers, so that including this
// adds no symbol to an object file. A row is a whole number of blocks; a tensor's rows follow each
// other. Alignment is at most 2.
//
// In the drawings x[v] is the v-th value of the block, `d` and friends are the stored halves
// raised to float, `&` and `>>` act on unsigned numbers. "lo"/"hi" are the low/high 4 bits of a
// byte.

#include <cstdint>
#include <type_traits>

namespace pagoda::tensor {

// An IEEE binary16, as bits (half.h converts).
using HalfBits = std::uint16_t;

constexpr int kSmallBlockValues = 32;   // Q4_0 ... Q8_0, IQ4_NL, MXFP4
constexpr int kSuperBlockValues = 256;  // the K types and IQ4_XS

// The 4-bit blocks of 32 values pair value j with value j + 16 in one byte:
//
//      qs[0]        qs[1]              qs[15]
//   +----+----+  +----+----+        +----+----+
//   | 16 |  0 |  | 17 |  1 |  ...   | 31 | 15 |     hi | lo
//   +----+----+  +----+----+        +----+----+
//
//   q[j] = qs[j] & 15,  q[j + 16] = qs[j] >> 4,  0 <= j < 16        (the pair layout)

// x[v] = d * (q[v] - 8)
struct BlockQ4_0 {
    static constexpr int kValues = kSmallBlockValues;
    HalfBits d;
    std::uint8_t qs[16];  // pair layout
};
static_assert(sizeof(BlockQ4_0) == 18);

// x[v] = d * q[v] + m
struct BlockQ4_1 {
    static constexpr int kValues = kSmallBlockValues;
    HalfBits d;
    HalfBits m;
    std::uint8_t qs[16];  // pair layout
};
static_assert(sizeof(BlockQ4_1) == 20);

// x[v] = d * ((q[v] | h[v] << 4) - 16), where h[v] is bit v of qh read as one 32-bit number:
// h[v] = qh[v / 8] >> (v % 8) & 1.
struct BlockQ5_0 {
    static constexpr int kValues = kSmallBlockValues;
    HalfBits d;
    std::uint8_t qh[4];   // fifth bits; bytes, because the block is only 2-aligned
    std::uint8_t qs[16];  // pair layout
};
static_assert(sizeof(BlockQ5_0) == 22);

// x[v] = d * (q[v] | h[v] << 4) + m, with h as in Q5_0.
struct BlockQ5_1 {
    static constexpr int kValues = kSmallBlockValues;
    HalfBits d;
    HalfBits m;
    std::uint8_t qh[4];
    std::uint8_t qs[16];  // pair layout
};
static_assert(sizeof(BlockQ5_1) == 24);

// x[v] = d * qs[v]
struct BlockQ8_0 {
    static constexpr int kValues = kSmallBlockValues;
    HalfBits d;
    std::int8_t qs[32];
};
static_assert(sizeof(BlockQ8_0) == 34);

// 16 groups of 16 values, each with a 4-bit scale and a 4-bit minimum. Two halves of 128 values;
// each half is 32 bytes of qs, and a byte holds the same place of four consecutive runs of 32:
//
//   v = 128 * half + 32 * run + l,  0 <= run < 4, 0 <= l < 32
//
//            7 6     5 4     3 2     1 0      bits of qs[32 * half + l]
//         +-------+-------+-------+-------+
//         | run 3 | run 2 | run 1 | run 0 |
//         +-------+-------+-------+-------+
//
//   q[v] = qs[32 * half + l] >> (2 * run) & 3                          (the run layout)
//   x[v] = d * (scales[v / 16] & 15) * q[v] - dmin * (scales[v / 16] >> 4)
struct BlockQ2_K {
    static constexpr int kValues = kSuperBlockValues;
    std::uint8_t scales[16];  // lo: scale, hi: minimum
    std::uint8_t qs[64];      // run layout
    HalfBits d;
    HalfBits dmin;
};
static_assert(sizeof(BlockQ2_K) == 84);

// 16 groups of 16 values with signed 6-bit scales. The two low bits lie in the run layout of Q2_K,
// the third in hmask: bit 4 * half + run of hmask[l].
//
//   h[v] = hmask[l] >> (4 * half + run) & 1
//   x[v] = d * (s[v / 16] - 32) * ((q[v] | h[v] << 2) - 4)
//
// The 6-bit scales s[0..15] are packed in 12 bytes: four low bits in the first eight bytes, two
// high bits in the last four.
//
//              7..4      3..0                      7 6    5 4    3 2    1 0
//           +--------+--------+                 +------+------+------+------+
//   [i]     | s[i+8] |  s[i]  |  i < 8  [8+i]   |s[12+i]|s[8+i]|s[4+i]| s[i] |  i < 4
//           +--------+--------+                 +------+------+------+------+
//               bits 3..0 of s                         bits 5..4 of s
//
//   s[g] = (g < 8 ? scales[g] & 15 : scales[g - 8] >> 4) | (scales[8 + g % 4] >> 2 * (g / 4) & 3)
//   << 4
struct BlockQ3_K {
    static constexpr int kValues = kSuperBlockValues;
    std::uint8_t hmask[32];
    std::uint8_t qs[64];  // run layout
    std::uint8_t scales[12];
    HalfBits d;
};
static_assert(sizeof(BlockQ3_K) == 110);

// 8 groups of 32 values, each with a 6-bit scale s and a 6-bit minimum m. Two consecutive groups
// share 32 bytes of qs:
//
//   v = 64 * pair + 32 * side + l,  0 <= pair < 4, side 0 (lo) or 1 (hi), 0 <= l < 32
//   q[v] = side == 0 ? qs[32 * pair + l] & 15 : qs[32 * pair + l] >> 4    (the K nibble layout)
//   x[v] = d * s[v / 32] * q[v] - dmin * m[v / 32]
//
// The 12 bytes of scales hold s[0..7] and m[0..7]:
//
//              7 6           5..0                                 7..4          3..0
//         +-----------+-----------------+                     +-----------+-----------+
//   [i]   | s[i+4] hi |  s[i], 6 bits   |  i < 4      [8+i]   | m[i+4] lo | s[i+4] lo |  i < 4
//   [4+i] | m[i+4] hi |  m[i], 6 bits   |             +-------+-----------+-----------+
//         +-----------+-----------------+               hi: bits 5..4, lo: bits 3..0
//
//   g < 4:   s[g] = scales[g] & 63            m[g] = scales[g + 4] & 63
//   g >= 4:  s[g] = (scales[g + 4] & 15) | (scales[g - 4] >> 6) << 4
//            m[g] = (scales[g + 4] >> 4) | (scales[g] >> 6) << 4
struct BlockQ4_K {
    static constexpr int kValues = kSuperBlockValues;
    HalfBits d;
    HalfBits dmin;
    std::uint8_t scales[12];
    std::uint8_t qs[128];  // K nibble layout
};
static_assert(sizeof(BlockQ4_K) == 144);

// As Q4_K with a fifth bit: bit g = v / 32 of qh[l], l = v % 32.
//
//   h[v] = qh[v % 32] >> (v / 32) & 1
//   x[v] = d * s[v / 32] * (q[v] | h[v] << 4) - dmin * m[v / 32]
struct BlockQ5_K {
    static constexpr int kValues = kSuperBlockValues;
    HalfBits d;
    HalfBits dmin;
    std::uint8_t scales[12];  // as in Q4_K
    std::uint8_t qh[32];
    std::uint8_t qs[128];  // K nibble layout
};
static_assert(sizeof(BlockQ5_K) == 176);

// 16 groups of 16 values with signed 8-bit scales. Two halves of 128 values, each four runs of 32:
//
//   v = 128 * half + 32 * run + l
//
//                            7..4      3..0                              7 6   5 4   3 2   1 0
//                         +--------+--------+                          +-----+-----+-----+-----+
//   ql[64*half + l]       | run 2  | run 0  |       qh[32*half + l]    |run 3|run 2|run 1|run 0|
//   ql[64*half + 32 + l]  | run 3  | run 1  |                          +-----+-----+-----+-----+
//                         +--------+--------+
//
//   low  = ql[64 * half + 32 * (run % 2) + l] >> (4 * (run / 2)) & 15
//   high = qh[32 * half + l] >> (2 * run) & 3
//   x[v] = d * scales[v / 16] * ((low | high << 4) - 32)
struct BlockQ6_K {
    static constexpr int kValues = kSuperBlockValues;
    std::uint8_t ql[128];
    std::uint8_t qh[64];
    std::int8_t scales[16];
    HalfBits d;
};
static_assert(sizeof(BlockQ6_K) == 210);

// The sixteen values of the non-linear 4-bit types, denser around zero.
constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                        1,    13,   25,  38,  53,  69,  89,  113};

// x[v] = d * kIq4Values[q[v]]
struct BlockIQ4_NL {
    static constexpr int kValues = kSmallBlockValues;
    HalfBits d;
    std::uint8_t qs[16];  // pair layout
};
static_assert(sizeof(BlockIQ4_NL) == 18);

// 8 groups of 32 values with 6-bit scales s; each group is 16 bytes of qs in the pair layout.
//
//   g = v / 32,  s[g] = (scales_l[g / 2] >> (4 * (g % 2)) & 15) | (scales_h >> (2 * g) & 3) << 4
//   q of group g from qs[16 * g .. 16 * g + 15]
//   x[v] = d * (s[g] - 32) * kIq4Values[q[v]]
struct BlockIQ4_XS {
    static constexpr int kValues = kSuperBlockValues;
    HalfBits d;
    std::uint16_t scales_h;    // two high bits of each scale, group 0 lowest
    std::uint8_t scales_l[4];  // four low bits, group 0 in the low half of the first byte
    std::uint8_t qs[128];
};
static_assert(sizeof(BlockIQ4_XS) == 136);

// Twice the values of the OCP microscaling type E2M1 (sign, two bits of exponent, one of mantissa),
// so that they are whole numbers; code 8 is minus zero.
constexpr std::int8_t kMxfp4DoubledValues[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                 0, -1, -2, -3, -4, -6, -8, -12};

// x[v] = 2^(e - 128) * kMxfp4DoubledValues[q[v]]. e = 0 and 1 give subnormal floats. OCP calls e =
// 255 NaN; files of GGUF tools never hold it, and readers take it as the number 2^127.
struct BlockMXFP4 {
    static constexpr int kValues = kSmallBlockValues;
    std::uint8_t e;
    std::uint8_t qs[16];  // pair layout
};
static_assert(sizeof(BlockMXFP4) == 17);

template <class... Blocks>
constexpr bool kAreFileLayouts =
    ((std::is_trivial_v<Blocks> && std::is_standard_layout_v<Blocks> && alignof(Blocks) <= 2) &&
     ...);
static_assert(
    kAreFileLayouts<BlockQ4_0, BlockQ4_1, BlockQ5_0, BlockQ5_1, BlockQ8_0, BlockQ2_K, BlockQ3_K,
                    BlockQ4_K, BlockQ5_K, BlockQ6_K, BlockIQ4_NL, BlockIQ4_XS, BlockMXFP4>);

}  // namespace pagoda::tensor
