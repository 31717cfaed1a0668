#pragma once
// Linear layers: packed weights (weight.h) times prepared rows (activations.h). Engine thread only.

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/ops/activations.h"
#include "kernels/ops/device_context.h"
#include "kernels/ops/weight.h"
#include "tensor/tensor_view.h"

namespace pagoda::kernels {

struct LinearOut {
    float* out;  // [rows, out_features]
    std::int64_t stride;
    const float* bias = nullptr;  // [out_features]
    bool accumulate = false;      // add to what `out` holds (residual)
};
// One weight over the rows [first_row, first_row + rows) of the activations; out.out is the row of
// first_row. Negative `rows`: all from first_row on. Experts are items of one weight and one range
// of rows each, over activations that were gathered by expert.
struct LinearItem {
    const Weight* weight;
    LinearOut out;
    std::int64_t first_row = 0;
    std::int64_t rows = -1;
};

void linear(const DeviceContext& device, const Weight& weight, Activations& in,
            const LinearOut& out);
// Several layers in one parallel region, each over all rows or its own range of them. The ranges
// may overlap, outputs may not. An item's output bits are those that linear() gives for its rows
// alone.
void linear_all(const DeviceContext& device, std::span<const LinearItem> items, Activations& in);

// The gated half of an MLP: act(gate(in)) * up(in), [rows, out_features].
struct GatedLayer {
    const Weight* gate;
    const Weight* up;  // of gate's shape
    const float* gate_bias = nullptr;
    const float* up_bias = nullptr;
    GateKind kind;
    const Weight* reader;  // of the outputs
};
struct GatedBuffers {
    float* gate;  // [rows, out_features] each; for readers that take floats
    float* up;
};
// New contents of `out`: where all three weights take int8, each piece is rounded as it comes and
// never stored as floats; else they are made in the buffers. in and out are not the same.
void linear_gated(const DeviceContext& device, const GatedLayer& layer, Activations& in,
                  const GatedBuffers& buffers, Activations& out);

// Rows of an embedding table as stored (any dtype): out[i, :] = table[ids[i], :] * scale.
void embed(const DeviceContext& device, const tensor::TensorView& table,
           std::span<const std::int32_t> ids, float scale, float* out);

}  // namespace pagoda::kernels
