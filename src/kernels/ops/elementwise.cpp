#include "kernels/ops/elementwise.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/check.h"

namespace pagoda::kernels {
namespace {

// Values of one piece: some microseconds of work, so that handing it to a thread pays.
constexpr std::int64_t kPieceValues = 16384;

// Calls body(begin, size) for pieces of [0, count).
template <class Body>
void for_pieces(const DeviceContext& device, std::int64_t count, std::int64_t piece,
                const Body& body) {
    const std::int64_t num_pieces = (count + piece - 1) / piece;
    device.team->for_each(num_pieces, [&](std::int64_t index) {
        const std::int64_t begin = index * piece;
        body(begin, std::min(piece, count - begin));
    });
}

std::int64_t rows_of_piece(std::int64_t cols) {
    return std::max<std::int64_t>(1, kPieceValues / std::max<std::int64_t>(1, cols));
}

// Calls kernel on row ranges of args, which has in, out, their strides, rows and cols.
template <class Args>
void run_norm(const DeviceContext& device, const Args& args, void (*kernel)(const Args&) noexcept) {
    CHECK(args.cols > 0 && args.rows >= 0,
          fmt::format("a norm of {} rows of {}", args.rows, args.cols));
    for_pieces(device, args.rows, rows_of_piece(args.cols),
               [&](std::int64_t begin, std::int64_t rows) {
                   Args part = args;
                   part.in += begin * args.in_stride;
                   part.out += begin * args.out_stride;
                   part.rows = rows;
                   kernel(part);
               });
}

}  // namespace

void rms_norm(const DeviceContext& device, const RmsNormArgs& args) {
    run_norm(device, args, device.kernels->rms_norm);
}

void layer_norm(const DeviceContext& device, const LayerNormArgs& args) {
    run_norm(device, args, device.kernels->layer_norm);
}

void gate(const DeviceContext& device, const GateArgs& args) {
    for_pieces(device, args.count, kPieceValues, [&](std::int64_t begin, std::int64_t size) {
        GateArgs part = args;
        part.gate += begin;
        if (args.up != nullptr) part.up += begin;
        part.out += begin;
        part.count = size;
        device.kernels->gate(part);
    });
}

void soft_cap(const DeviceContext& device, const SoftCapArgs& args) {
    CHECK(args.cap > 0, fmt::format("a soft cap of {}", args.cap));
    for_pieces(device, args.count, kPieceValues, [&](std::int64_t begin, std::int64_t size) {
        device.kernels->soft_cap({.x = args.x + begin, .count = size, .cap = args.cap});
    });
}

void add(const DeviceContext& device, const AddArgs& args) {
    for_pieces(device, args.count, kPieceValues, [&](std::int64_t begin, std::int64_t size) {
        device.kernels->add({.x = args.x + begin, .y = args.y + begin, .count = size});
    });
}

}  // namespace pagoda::kernels
