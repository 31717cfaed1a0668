#include "kernels/ops/heads.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/check.h"

namespace pagoda::kernels {
namespace {

// Values of one piece: some microseconds of work, so that handing it to a thread pays.
constexpr std::int64_t kPieceValues = 8 * 1024;

struct Piece {
    std::int64_t first, count;  // rows
};

// Q or K.
struct Side {
    float* x;
    std::int64_t heads;
    const float* norm;
};

void norm_and_rotate(const DeviceContext& device, const HeadRows& all, const Piece& piece,
                     const Side& side) {
    const std::int64_t stride = side.heads * all.head_dim;
    float* const begin = side.x + piece.first * stride;
    if (side.norm != nullptr)
        device.kernels->rms_norm({.in = begin,
                                  .in_stride = all.head_dim,
                                  .out = begin,
                                  .out_stride = all.head_dim,
                                  .weight = side.norm,
                                  .rows = piece.count * side.heads,
                                  .cols = all.head_dim,
                                  .epsilon = all.norm_epsilon});
    const std::int64_t angles = piece.first * (all.rotary_dim / 2);
    device.kernels->rope({.x = begin,
                          .row_stride = stride,
                          .rows = piece.count,
                          .heads = side.heads,
                          .head_dim = all.head_dim,
                          .rotary_dim = all.rotary_dim,
                          .cos = all.cos + angles,
                          .sin = all.sin + angles,
                          .style = all.style});
}

void place_piece(const DeviceContext& device, const HeadRows& all, const Piece& piece) {
    norm_and_rotate(device, all, piece, {all.q, all.heads, all.q_norm});
    norm_and_rotate(device, all, piece, {all.k, all.kv_heads, all.k_norm});
    const std::int64_t stride = all.kv_heads * all.head_dim;
    device.kernels->kv_write({.kv = all.kv,
                              .k = all.k + piece.first * stride,
                              .v = all.v + piece.first * stride,
                              .k_stride = stride,
                              .v_stride = stride,
                              .rows = piece.count,
                              .blocks = all.blocks + piece.first,
                              .slots = all.slots + piece.first});
}

}  // namespace

void place_heads(const DeviceContext& device, const HeadRows& heads) {
    CHECK(heads.rotary_dim % 2 == 0 && heads.rotary_dim >= 0 && heads.rotary_dim <= heads.head_dim,
          fmt::format("rotary_dim {} of head_dim {}", heads.rotary_dim, heads.head_dim));
    CHECK(heads.kv.data != nullptr && heads.kv.head_dim == heads.head_dim &&
              heads.kv.kv_heads == heads.kv_heads && heads.head_dim % 16 == 0,
          "K and V of another shape than the cache");
    const std::int64_t row_values = (heads.heads + 2 * heads.kv_heads) * heads.head_dim;
    const std::int64_t piece_rows = std::max<std::int64_t>(1, kPieceValues / row_values);
    if (heads.rows <= piece_rows) return place_piece(device, heads, {0, heads.rows});
    device.team->for_each((heads.rows + piece_rows - 1) / piece_rows, [&](std::int64_t piece) {
        const std::int64_t first = piece * piece_rows;
        place_piece(device, heads, {first, std::min(piece_rows, heads.rows - first)});
    });
}

}  // namespace pagoda::kernels
