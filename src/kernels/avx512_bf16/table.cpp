#include "kernels/avx512_bf16/variant.h"
#include "kernels/tables.h"

namespace pagoda::kernels {

namespace {
constexpr CpuFeature kRequired =
    CpuFeature::kAvx2 | CpuFeature::kAvx512 | CpuFeature::kAvx512Vnni | CpuFeature::kAvx512Bf16;
}  // namespace

const Kernels table_avx512_bf16 = {
    .name = "avx512_bf16",
    .parent = "avx512_vnni",
    .required = kRequired,
    .worthwhile = CpuFeature::kFastBf16,
    .linear_bf16 = avx512_bf16::linear_bf16,
    .multiplies_bf16 = true,
};

}  // namespace pagoda::kernels
