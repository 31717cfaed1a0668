#include "kernels/avx2/variant.h"
#include "kernels/tables.h"
#include "kernels/tile32/pack.h"

namespace pagoda::kernels {

const Kernels table_avx2 = {
    .name = "avx2",
    .parent = "ref",
    .required = CpuFeature::kAvx2,
    .tile_columns = tile32::kColumns,
    .layout = kLayoutTile32,
    .packed_bytes = tile32::packed_bytes,
    .pack = tile32::pack,
    .quantized_row_bytes = tile32::quantized_row_bytes,
    .quantize = avx2::quantize,
    .linear_int8 = avx2::linear_int8,
    .linear_f32 = avx2::linear_f32,
};

}  // namespace pagoda::kernels
