#pragma once
// Entry points of the variant for AVX2 with FMA, F16C and BMI2: 256-bit vectors. What is not here
// is inherited from ref. Only this folder's files may include it.

#include "kernels/args.h"
#include "kernels/kernels.h"

namespace pagoda::kernels::avx2 {

// linear_int8.cpp, linear_f32.cpp, quantize.cpp; packing is tile32's
void quantize(const QuantizeArgs& args) noexcept;
void linear_int8(const LinearArgs& args) noexcept;
void linear_f32(const LinearArgs& args) noexcept;

}  // namespace pagoda::kernels::avx2
