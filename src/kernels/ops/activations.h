#pragma once
// Activations: the rows that linear layers read, prepared once and shared by all that read them (Q,
// K, V; gate, up). Engine thread only.

#include <cstddef>
#include <cstdint>

#include "kernels/ops/device_context.h"
#include "kernels/ops/weight.h"
#include "tensor/aligned_buffer.h"

namespace pagoda::kernels {

// Rows of activations [rows, cols] with their int8 form made on demand. Buffers are allocated once
// for the largest use.
class Activations {
  public:
    Activations(const DeviceContext& device, std::int64_t max_rows, std::int64_t max_cols);
    [[nodiscard]] static std::size_t bytes(const Kernels& kernels, std::int64_t max_rows,
                                           std::int64_t max_cols);

    // New contents: borrowed rows, valid until the next set(). REQUIRES: within the maxima.
    void set(const float* rows_data, std::int64_t rows, std::int64_t cols, std::int64_t stride);
    // The same with the rows of args.out, which are made here, and rounded as `reader` wants them
    // while they are in the cache.
    void set_rms_norm(const DeviceContext& device, const RmsNormArgs& args, const Weight& reader);
    // New contents that exist as int8 alone: the caller makes them, piece by piece, by
    // kernels->quantize() with these arguments, of which `in`, its stride, the first row of `out`
    // and the range of columns are each piece's own.
    [[nodiscard]] QuantizeArgs begin_int8(const DeviceContext& device, std::int64_t rows,
                                          std::int64_t cols);
    // Null where they exist as int8 alone.
    [[nodiscard]] const float* data() const { return data_; }
    [[nodiscard]] std::int64_t rows() const { return rows_; }
    [[nodiscard]] std::int64_t cols() const { return cols_; }
    [[nodiscard]] std::int64_t stride() const { return stride_; }
    // The rows as int8 groups, of kernels->quantized_row_bytes(cols()) each; made once after set().
    [[nodiscard]] const std::byte* int8_rows(const DeviceContext& device);
    // What those lost, as int8 groups again. REQUIRES: cols() <= kMaxTwiceRoundedInputs.
    [[nodiscard]] const std::byte* residual_rows(const DeviceContext& device);

  private:
    // Calls body(first, count) over all rows, on the team when they are many.
    template <class Body>
    void spread(const DeviceContext& device, const Body& body) const;
    // Where a row's int8 form starts, after checks of the buffer.
    [[nodiscard]] std::byte* room_for(const DeviceContext& device, tensor::AlignedBuffer& buffer);
    void round(const DeviceContext& device, std::int64_t first, std::int64_t rows, std::byte* out);
    void round_residual(const DeviceContext& device, std::int64_t first, std::int64_t rows,
                        std::byte* out);

    tensor::AlignedBuffer quantized_, residual_;
    const float* data_ = nullptr;
    std::int64_t rows_ = 0, cols_ = 0, stride_ = 0;
    bool has_int8_ = false, has_residual_ = false;
};

}  // namespace pagoda::kernels
