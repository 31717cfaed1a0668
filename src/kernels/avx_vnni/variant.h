#pragma once
// Entry points of the variant for AVX2 with AVX-VNNI: CPUs with VPDPBUSD but without AVX-512. What
// is not here is inherited from avx2. Only this folder's files may include it.

#include "kernels/args.h"
#include "kernels/kernels.h"

namespace pagoda::kernels::avx_vnni {

// linear_int8*.cpp: the weights and rows of avx2, and the same bits
void linear_int8(const LinearArgs& args) noexcept;
void linear_int8_blocks(const LinearArgs& args) noexcept;
void linear_int8_supers(const LinearArgs& args) noexcept;

// peak.cpp
double peak_int8(std::int64_t rounds) noexcept;

}  // namespace pagoda::kernels::avx_vnni
