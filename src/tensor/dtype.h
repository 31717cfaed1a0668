#pragma once
// Element types of tensors, block-quantised ones included. A block holds `block_values` values of
// one row in `block_bytes` bytes (layouts: quant_block.h). Constant data; thread-safe.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pagoda::tensor {

enum class DType : std::uint8_t {
    kF32,
    kF16,
    kBF16,
    kI8,
    kI16,
    kI32,
    kI64,
    kF64,
    kQ4_0,
    kQ4_1,
    kQ5_0,
    kQ5_1,
    kQ8_0,
    kQ2_K,
    kQ3_K,
    kQ4_K,
    kQ5_K,
    kQ6_K,
    kIQ4_NL,
    kIQ4_XS,
    kMXFP4,
};

struct DTypeInfo {
    DType dtype;
    std::string_view name;  // "Q4_K", as GGUF tools write it
    int block_values;       // 1 for plain types
    int block_bytes;
    bool is_quantized;
};

[[nodiscard]] const DTypeInfo& info(DType dtype);
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name);
// Bytes of a row of `values`. REQUIRES: values is a multiple of block_values.
[[nodiscard]] std::size_t row_bytes(DType dtype, std::int64_t values);

}  // namespace pagoda::tensor
