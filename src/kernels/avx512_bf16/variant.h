#pragma once
// Entry points of the variant for CPUs whose VDPBF16PS is worth its rounding of the activations.
// What is not here is inherited from avx512_vnni. Only this folder's files may include it.

#include "kernels/args.h"
#include "kernels/kernels.h"

namespace pagoda::kernels::avx512_bf16 {

// linear_bf16.cpp: the weights of avx2
void linear_bf16(const LinearArgs& args) noexcept;

}  // namespace pagoda::kernels::avx512_bf16
