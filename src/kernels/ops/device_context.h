#pragma once
// DeviceContext: what an operator needs to run: the kernel table and the threads. Built once by
// main(); borrowed by models. Used by the engine thread alone (the team's caller).

#include "base/thread_team.h"
#include "kernels/kernels.h"

namespace pagoda::kernels {

// How linear layers treat activations (configuration: activation_dtype).
enum class ActivationMode : std::uint8_t {
    kAuto,  // int8 groups for block-quantised weights, f32 for BF16, F16 and F32 weights; bf16 for
            // BF16 weights where the variant multiplies bf16
    kF32,   // exactly dequantised weights, activations not rounded: the quality oracle
};

struct DeviceContext {
    const Kernels* kernels = nullptr;  // lives for ever
    base::ThreadTeam* team = nullptr;  // outlives every model
    ActivationMode activation_mode = ActivationMode::kAuto;
};

}  // namespace pagoda::kernels
