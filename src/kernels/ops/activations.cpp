#include "kernels/ops/activations.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "base/check.h"

namespace pagoda::kernels {
namespace {

constexpr std::int64_t kInlineValues = 16 * 1024;  // fewer are not worth waking the team

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

// What rounding a group to int8 loses (the rule of QuantizeArgs). Nothing where the group has no
// finite scale: the first rounding has spoken for it.
void residual_of_group(const float* in, float* out) {
    float largest = 0;
    for (int k = 0; k < kActivationGroup; ++k) {
        const float magnitude = std::abs(in[k]);
        if (!(magnitude <= largest)) largest = magnitude;
    }
    const bool has_scale = largest >= kTinyActivation && std::isfinite(largest);
    const float scale = largest / 127.0F;
    const float inverse = 127.0F / largest;
    // Adding and taking away 1.5 * 2^23 rounds to the nearest integer, ties to even.
    constexpr float kRound = 12582912.0F;
    for (int k = 0; k < kActivationGroup; ++k) {
        const float code = (in[k] * inverse + kRound) - kRound;
        out[k] = has_scale ? in[k] - code * scale : 0.0F;
    }
}

}  // namespace

Activations::Activations(const DeviceContext& device, std::int64_t max_rows, std::int64_t max_cols)
    : quantized_(static_cast<std::size_t>(max_rows) *
                 device.kernels->quantized_row_bytes(max_cols)),
      residual_(static_cast<std::size_t>(max_rows) *
                device.kernels->quantized_row_bytes(std::min(max_cols, kMaxTwiceRoundedInputs))) {}

std::size_t Activations::bytes(const Kernels& kernels, std::int64_t max_rows,
                               std::int64_t max_cols) {
    return static_cast<std::size_t>(max_rows) *
           (kernels.quantized_row_bytes(max_cols) +
            kernels.quantized_row_bytes(std::min(max_cols, kMaxTwiceRoundedInputs)));
}

void Activations::set(const float* rows_data, std::int64_t rows, std::int64_t cols,
                      std::int64_t stride) {
    data_ = rows_data;
    rows_ = rows;
    cols_ = cols;
    stride_ = stride;
    has_int8_ = false;
    has_residual_ = false;
}

std::byte* Activations::room_for(const DeviceContext& device, tensor::AlignedBuffer& buffer) {
    CHECK(cols_ % kActivationGroup == 0,
          fmt::format("int8 activations need whole groups of {}, not {} values", kActivationGroup,
                      cols_));
    const std::size_t row_bytes = device.kernels->quantized_row_bytes(cols_);
    CHECK(static_cast<std::size_t>(rows_) * row_bytes <= buffer.bytes(),
          fmt::format("{} rows of {} activations exceed the buffer of {} bytes", rows_, cols_,
                      buffer.bytes()));
    return buffer.data();
}

void Activations::round(const DeviceContext& device, std::int64_t first, std::int64_t rows,
                        std::byte* out) {
    const std::size_t row_bytes = device.kernels->quantized_row_bytes(cols_);
    device.kernels->quantize({.in = data_ + first * stride_,
                              .in_stride = stride_,
                              .rows = rows,
                              .col_begin = 0,
                              .col_end = cols_,
                              .out = out + static_cast<std::size_t>(first) * row_bytes,
                              .cols = cols_});
}

void Activations::round_residual(const DeviceContext& device, std::int64_t first, std::int64_t rows,
                                 std::byte* out) {
    const std::size_t row_bytes = device.kernels->quantized_row_bytes(cols_);
    std::array<float, kMaxTwiceRoundedInputs> lost{};
    for (std::int64_t row = first; row < first + rows; ++row) {
        for (std::int64_t k = 0; k < cols_; k += kActivationGroup)
            residual_of_group(data_ + row * stride_ + k, lost.data() + k);
        device.kernels->quantize({.in = lost.data(),
                                  .in_stride = cols_,
                                  .rows = 1,
                                  .col_begin = 0,
                                  .col_end = cols_,
                                  .out = out + static_cast<std::size_t>(row) * row_bytes,
                                  .cols = cols_});
    }
}

const std::byte* Activations::int8_rows(const DeviceContext& device) {
    if (has_int8_) return quantized_.data();
    std::byte* const out = room_for(device, quantized_);
    spread(device, [&](std::int64_t first, std::int64_t rows) { round(device, first, rows, out); });
    has_int8_ = true;
    return out;
}

const std::byte* Activations::residual_rows(const DeviceContext& device) {
    if (has_residual_) return residual_.data();
    CHECK(cols_ <= kMaxTwiceRoundedInputs && data_ != nullptr,
          fmt::format("{} activations can't be rounded twice", cols_));
    std::byte* const out = room_for(device, residual_);
    spread(device, [&](std::int64_t first, std::int64_t rows) {
        round_residual(device, first, rows, out);
    });
    has_residual_ = true;
    return out;
}

void Activations::set_rms_norm(const DeviceContext& device, const RmsNormArgs& args,
                               const Weight& reader) {
    set(args.out, args.rows, args.cols, args.out_stride);
    has_int8_ = takes_int8(device, reader);
    has_residual_ = rounds_twice(device, reader);
    std::byte* const rounded = has_int8_ ? room_for(device, quantized_) : nullptr;
    std::byte* const residual = has_residual_ ? room_for(device, residual_) : nullptr;
    spread(device, [&](std::int64_t first, std::int64_t rows) {
        RmsNormArgs part = args;
        part.in += first * args.in_stride;
        part.out += first * args.out_stride;
        part.rows = rows;
        device.kernels->rms_norm(part);
        if (rounded != nullptr) round(device, first, rows, rounded);
        if (residual != nullptr) round_residual(device, first, rows, residual);
    });
}

QuantizeArgs Activations::begin_int8(const DeviceContext& device, std::int64_t rows,
                                     std::int64_t cols) {
    set(nullptr, rows, cols, cols);
    has_int8_ = true;
    return {.in = nullptr,
            .in_stride = 0,
            .rows = rows,
            .col_begin = 0,
            .col_end = cols,
            .out = room_for(device, quantized_),
            .cols = cols};
}

template <class Body>
void Activations::spread(const DeviceContext& device, const Body& body) const {
    if (rows_ * cols_ <= kInlineValues) return body(0, rows_);
    const std::int64_t item_rows = std::max<std::int64_t>(1, kInlineValues / 2 / cols_);
    device.team->for_each(ceil_div(rows_, item_rows), [&](std::int64_t item) {
        const std::int64_t first = item * item_rows;
        body(first, std::min(item_rows, rows_ - first));
    });
}

}  // namespace pagoda::kernels
