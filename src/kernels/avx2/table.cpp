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
    .layout_version = kLayoutTile32Version,
    .packed_bytes = tile32::packed_bytes,
    .pack = tile32::pack,
    .quantized_row_bytes = tile32::quantized_row_bytes,
    .quantize = avx2::quantize,
    .linear_int8 = avx2::linear_int8,
    .linear_f32 = avx2::linear_f32,
    .rms_norm = avx2::rms_norm,
    .layer_norm = avx2::layer_norm,
    .rope = avx2::rope,
    .gate = avx2::gate,
    .soft_cap = avx2::soft_cap,
    .add = avx2::add,
    .kv_write = avx2::kv_write,
    .attention_scratch_floats = avx2::attention_scratch_floats,
    .attention_rows = avx2::kAttentionRows,
    .attention = avx2::attention,
    .attention_merge = avx2::attention_merge,
    .peak_int8 = avx2::peak_int8,
    .peak_f32 = avx2::peak_f32,
    .read_memory = avx2::read_memory,
};

}  // namespace pagoda::kernels
