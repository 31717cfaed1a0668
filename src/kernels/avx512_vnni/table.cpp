#include "kernels/avx512_vnni/variant.h"
#include "kernels/tables.h"
#include "kernels/tile32/pack.h"

namespace pagoda::kernels {

namespace {
constexpr CpuFeature kRequired = CpuFeature::kAvx2 | CpuFeature::kAvx512 | CpuFeature::kAvx512Vnni;
}  // namespace

const Kernels table_avx512_vnni = {
    .name = "avx512_vnni",
    .parent = "avx2",
    .required = kRequired,
    .quantized_row_bytes = tile32::quantized_row_bytes,
    .quantize = avx512_vnni::quantize,
    .linear_int8 = avx512_vnni::linear_int8,
    .linear_f32 = avx512_vnni::linear_f32,
    .rms_norm = avx512_vnni::rms_norm,
    .layer_norm = avx512_vnni::layer_norm,
    .rope = avx512_vnni::rope,
    .gate = avx512_vnni::gate,
    .soft_cap = avx512_vnni::soft_cap,
    .add = avx512_vnni::add,
    .kv_write = avx512_vnni::kv_write,
    .attention_scratch_floats = avx512_vnni::attention_scratch_floats,
    .attention_rows = avx512_vnni::kAttentionRows,
    .attention = avx512_vnni::attention,
    .attention_merge = avx512_vnni::attention_merge,
    .peak_int8 = avx512_vnni::peak_int8,
    .peak_f32 = avx512_vnni::peak_f32,
    .peak_bf16 = avx512_vnni::peak_bf16,
    .read_memory = avx512_vnni::read_memory,
};

}  // namespace pagoda::kernels
