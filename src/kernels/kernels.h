#pragma once
// Kernels: the table of one variant (an instruction set or a device). Chosen once at start, passed
// down in a DeviceContext; immutable and thread-safe. Entry points are coarse and single-threaded:
// ops/ splits the work.
//
// Contract: within a variant every output element is a function of its own inputs only, whatever
// the number of rows, the column range, the split over threads or chunks (ARCHITECTURE.md,
// section 4). ref/ is the specification; other variants agree with it within the bounds that
// conformance.h states.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/args.h"

namespace pagoda::kernels {

// CPU features a variant needs, as a bit set.
enum class CpuFeature : std::uint32_t {
    kNone = 0,
    kAvx2 = 1U << 0,  // with FMA, F16C and BMI2
    kAvxVnni = 1U << 1,
    kAvx512 = 1U << 2,  // F, BW, VL, DQ
    kAvx512Vnni = 1U << 3,
    kAvx512Bf16 = 1U << 4,
    kAmxInt8 = 1U << 5,
    kAmxBf16 = 1U << 6,
    // VDPBF16PS does twice the work of an f32 multiplication in the same time. By CPU model, not by
    // a measurement, so that a machine always chooses the same variant.
    kFastBf16 = 1U << 7,
};
[[nodiscard]] constexpr CpuFeature operator|(CpuFeature a, CpuFeature b) {
    return static_cast<CpuFeature>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
[[nodiscard]] constexpr bool contains(CpuFeature set, CpuFeature wanted) {
    return (static_cast<std::uint32_t>(set) & static_cast<std::uint32_t>(wanted)) ==
           static_cast<std::uint32_t>(wanted);
}

// A null entry is inherited from the parent (registry.cpp fills it in).
struct Kernels {
    const char* name = nullptr;
    const char* parent = nullptr;  // null for ref
    CpuFeature required = CpuFeature::kNone;
    CpuFeature worthwhile = CpuFeature::kNone;  // and what it takes to be chosen without its name

    // Weights. A layout belongs to the variant that packs; a child may inherit packing and
    // quantizing and override linear_* alone, as long as it reads what its parent writes.
    std::int64_t tile_columns = 0;
    std::uint32_t layout = 0;
    std::uint32_t layout_version = 0;  // of that layout (tables.h)
    std::size_t (*packed_bytes)(tensor::DType dtype, std::int64_t out, std::int64_t in) = nullptr;
    void (*pack)(const PackArgs&) noexcept = nullptr;
    // int8 activations with block-quantised weights, and f32 activations with exactly
    // dequantised weights of any type.
    std::size_t (*quantized_row_bytes)(std::int64_t cols) = nullptr;
    void (*quantize)(const QuantizeArgs&) noexcept = nullptr;
    void (*linear_int8)(const LinearArgs&) noexcept = nullptr;
    void (*linear_f32)(const LinearArgs&) noexcept = nullptr;
    // f32 activations rounded to bf16, with BF16 weights of an even number of inputs. May be null:
    // only a parent of the same layout bequeaths it. Layers use it where multiplies_bf16 says so
    // (not in ref, whose layers stay exact): its bits differ from linear_f32's.
    void (*linear_bf16)(const LinearArgs&) noexcept = nullptr;
    bool multiplies_bf16 = false;

    // Exact; F32, F16, BF16 and every block-quantised type.
    void (*dequantize)(const DequantizeArgs&) noexcept = nullptr;
    void (*rms_norm)(const RmsNormArgs&) noexcept = nullptr;
    void (*layer_norm)(const LayerNormArgs&) noexcept = nullptr;
    void (*rope)(const RopeArgs&) noexcept = nullptr;
    void (*gate)(const GateArgs&) noexcept = nullptr;
    void (*soft_cap)(const SoftCapArgs&) noexcept = nullptr;
    void (*add)(const AddArgs&) noexcept = nullptr;

    // KV cache and attention; all f32 arithmetic on exactly widened K and V.
    void (*kv_write)(const KvWriteArgs&) noexcept = nullptr;
    std::size_t (*attention_scratch_floats)(std::int64_t rows, std::int64_t group,
                                            std::int64_t head_dim) = nullptr;
    std::int64_t attention_rows = 0;  // query rows of a work item, at most
    void (*attention)(const AttentionArgs&) noexcept = nullptr;
    void (*attention_merge)(const AttentionMergeArgs&) noexcept = nullptr;

    // What the machine can do at most: the densest loops of this instruction set (roof.h). Each
    // does `rounds` rounds and returns the operations that it did (a multiplication and an addition
    // count two); the bytes of read_memory are all read. bf16 needs kAvx512Bf16 beyond `required`.
    double (*peak_int8)(std::int64_t rounds) noexcept = nullptr;
    double (*peak_f32)(std::int64_t rounds) noexcept = nullptr;
    double (*peak_bf16)(std::int64_t rounds) noexcept = nullptr;  // 0: no such instruction
    std::uint64_t (*read_memory)(const std::byte* data, std::size_t bytes) noexcept = nullptr;
};

}  // namespace pagoda::kernels
