#include "kernels/avx_vnni/variant.h"
#include "kernels/tables.h"

namespace pagoda::kernels {

const Kernels table_avx_vnni = {
    .name = "avx_vnni",
    .parent = "avx2",
    .required = CpuFeature::kAvx2 | CpuFeature::kAvxVnni,
    .linear_int8 = avx_vnni::linear_int8,
    .peak_int8 = avx_vnni::peak_int8,
};

}  // namespace pagoda::kernels
