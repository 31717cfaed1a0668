#include "kernels/ref/variant.h"
#include "kernels/tables.h"

namespace pagoda::kernels {

const Kernels table_ref = {
    .name = "ref",
    .parent = nullptr,
    .required = CpuFeature::kNone,
    .tile_columns = 1,
    .layout = kLayoutRows,
    .layout_version = kLayoutRowsVersion,
    .packed_bytes = ref::packed_bytes,
    .pack = ref::pack,
    .quantized_row_bytes = ref::quantized_row_bytes,
    .quantize = ref::quantize,
    .linear_int8 = ref::linear_int8,
    .linear_f32 = ref::linear_f32,
    .linear_bf16 = ref::linear_bf16,
    .dequantize = ref::dequantize,
    .rms_norm = ref::rms_norm,
    .layer_norm = ref::layer_norm,
    .rope = ref::rope,
    .gate = ref::gate,
    .soft_cap = ref::soft_cap,
    .add = ref::add,
    .kv_write = ref::kv_write,
    .attention_scratch_floats = ref::attention_scratch_floats,
    .attention_rows = ref::kAttentionRows,
    .attention = ref::attention,
    .attention_merge = ref::attention_merge,
    .peak_int8 = ref::peak_int8,
    .peak_f32 = ref::peak_f32,
    .peak_bf16 = ref::peak_bf16,
    .read_memory = ref::read_memory,
};

}  // namespace pagoda::kernels
