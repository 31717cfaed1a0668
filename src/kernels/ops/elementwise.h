#pragma once
// Row-wise operators, split over the thread team by rows or fixed pieces. Engine thread only.

#include <cstdint>

#include "kernels/ops/device_context.h"

namespace pagoda::kernels {

void rms_norm(const DeviceContext& device, const RmsNormArgs& args);
void layer_norm(const DeviceContext& device, const LayerNormArgs& args);
// gate, up, out: [count] in all, any shape.
void gate(const DeviceContext& device, const GateArgs& args);
void soft_cap(const DeviceContext& device, const SoftCapArgs& args);
void add(const DeviceContext& device, const AddArgs& args);

}  // namespace pagoda::kernels
