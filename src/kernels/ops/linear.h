#pragma once
// Linear layers over packed weights (weight.h). Activations are rows prepared once and shared by
// the layers that read them (Q, K, V; gate, up). Engine thread only.

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/ops/device_context.h"
#include "kernels/ops/weight.h"
#include "tensor/aligned_buffer.h"
#include "tensor/tensor_view.h"

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
    [[nodiscard]] const float* data() const { return data_; }
    [[nodiscard]] std::int64_t rows() const { return rows_; }
    [[nodiscard]] std::int64_t cols() const { return cols_; }
    [[nodiscard]] std::int64_t stride() const { return stride_; }
    // The rows as int8 groups, of kernels->quantized_row_bytes(cols()) each; made once after set().
    [[nodiscard]] const std::byte* int8_rows(const DeviceContext& device);
    // What those lost, as int8 groups again. REQUIRES: cols() <= kMaxTwiceRoundedInputs.
    [[nodiscard]] const std::byte* residual_rows(const DeviceContext& device);

  private:
    // Calls quantize_rows(first, count) over all rows, on the team when they are many.
    template <class QuantizeRows>
    void spread(const DeviceContext& device, const QuantizeRows& quantize_rows) const;

    tensor::AlignedBuffer quantized_, residual_;
    const float* data_ = nullptr;
    std::int64_t rows_ = 0, cols_ = 0, stride_ = 0;
    bool has_int8_ = false, has_residual_ = false;
};

struct LinearOut {
    float* out;  // [rows, out_features]
    std::int64_t stride;
    const float* bias = nullptr;  // [out_features]
    bool accumulate = false;      // add to what `out` holds (residual)
};
struct LinearItem {
    const Weight* weight;
    LinearOut out;
};

void linear(const DeviceContext& device, const Weight& weight, Activations& in,
            const LinearOut& out);
// Several layers over the same rows in one parallel region.
void linear_all(const DeviceContext& device, std::span<const LinearItem> items, Activations& in);

// Rows of an embedding table as stored (any dtype): out[i, :] = table[ids[i], :] * scale.
void embed(const DeviceContext& device, const tensor::TensorView& table,
           std::span<const std::int32_t> ids, float scale, float* out);

}  // namespace pagoda::kernels
