#pragma once
// Entry points of the scalar reference: the specification of every operator. Plain C++ for any
// machine, written to be read. The order of each sum is stated where it is computed.

#include "kernels/args.h"
#include "kernels/kernels.h"

namespace pagoda::kernels::ref {

// linear.cpp, quantize.cpp, pack.cpp, dequantize.cpp
std::size_t packed_bytes(tensor::DType dtype, std::int64_t out, std::int64_t in);
void pack(const PackArgs& args) noexcept;
std::size_t quantized_row_bytes(std::int64_t cols);
void quantize(const QuantizeArgs& args) noexcept;
void linear_int8(const LinearArgs& args) noexcept;
void linear_f32(const LinearArgs& args) noexcept;
void linear_bf16(const LinearArgs& args) noexcept;
void dequantize(const DequantizeArgs& args) noexcept;

// norm.cpp, rope.cpp, gate.cpp, elementwise.cpp
void rms_norm(const RmsNormArgs& args) noexcept;
void layer_norm(const LayerNormArgs& args) noexcept;
void rope(const RopeArgs& args) noexcept;
void gate(const GateArgs& args) noexcept;
void soft_cap(const SoftCapArgs& args) noexcept;
void add(const AddArgs& args) noexcept;

// kv_write.cpp, attention.cpp
inline constexpr std::int64_t kAttentionRows = 32;
void kv_write(const KvWriteArgs& args) noexcept;
std::size_t attention_scratch_floats(std::int64_t rows, std::int64_t group, std::int64_t head_dim);
void attention(const AttentionArgs& args) noexcept;
void attention_merge(const AttentionMergeArgs& args) noexcept;

// peak.cpp
double peak_int8(std::int64_t rounds) noexcept;
double peak_f32(std::int64_t rounds) noexcept;
double peak_bf16(std::int64_t rounds) noexcept;
std::uint64_t read_memory(const std::byte* data, std::size_t bytes) noexcept;

}  // namespace pagoda::kernels::ref
