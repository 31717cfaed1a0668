#include "kernels/avx2/variant.h"
#include "kernels/tables.h"

namespace pagoda::kernels {

const Kernels table_avx2 = {
    .name = "avx2",
    .parent = "ref",
    .required = CpuFeature::kAvx2,
};

}  // namespace pagoda::kernels
