#pragma once
// Entry points of the variant for AVX-512 (F, BW, VL, DQ) with VNNI: 512-bit vectors. What is not
// here is inherited from avx2. Only this folder's files may include it.

#include "kernels/args.h"
#include "kernels/kernels.h"

namespace pagoda::kernels::avx512_vnni {}  // namespace pagoda::kernels::avx512_vnni
