#pragma once
// Entry points of the variant for AVX2 with FMA, F16C and BMI2: 256-bit vectors. What is not here
// is inherited from ref. Only this folder's files may include it.

#include "kernels/args.h"
#include "kernels/kernels.h"

namespace pagoda::kernels::avx2 {}  // namespace pagoda::kernels::avx2
