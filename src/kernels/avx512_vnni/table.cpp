#include "kernels/avx512_vnni/variant.h"
#include "kernels/tables.h"

namespace pagoda::kernels {

namespace {
constexpr CpuFeature kRequired = CpuFeature::kAvx2 | CpuFeature::kAvx512 | CpuFeature::kAvx512Vnni;
}  // namespace

const Kernels table_avx512_vnni = {
    .name = "avx512_vnni",
    .parent = "avx2",
    .required = kRequired,
};

}  // namespace pagoda::kernels
