#include "tensor/dtype.h"

#include <array>

#include <fmt/core.h>

#include "base/check.h"
#include "tensor/quant_block.h"

namespace pagoda::tensor {
namespace {

template <class T>
constexpr DTypeInfo plain(DType dtype, std::string_view name) {
    return {dtype, name, 1, sizeof(T), false};
}

template <class Block>
constexpr DTypeInfo blocks(DType dtype, std::string_view name) {
    return {dtype, name, Block::kValues, sizeof(Block), true};
}

// In the order of the enumeration, which info() relies on.
constexpr std::array kInfos{
    plain<float>(DType::kF32, "F32"),
    plain<std::uint16_t>(DType::kF16, "F16"),
    plain<std::uint16_t>(DType::kBF16, "BF16"),
    plain<std::int8_t>(DType::kI8, "I8"),
    plain<std::int16_t>(DType::kI16, "I16"),
    plain<std::int32_t>(DType::kI32, "I32"),
    plain<std::int64_t>(DType::kI64, "I64"),
    plain<double>(DType::kF64, "F64"),
    blocks<BlockQ4_0>(DType::kQ4_0, "Q4_0"),
    blocks<BlockQ4_1>(DType::kQ4_1, "Q4_1"),
    blocks<BlockQ5_0>(DType::kQ5_0, "Q5_0"),
    blocks<BlockQ5_1>(DType::kQ5_1, "Q5_1"),
    blocks<BlockQ8_0>(DType::kQ8_0, "Q8_0"),
    blocks<BlockQ2_K>(DType::kQ2_K, "Q2_K"),
    blocks<BlockQ3_K>(DType::kQ3_K, "Q3_K"),
    blocks<BlockQ4_K>(DType::kQ4_K, "Q4_K"),
    blocks<BlockQ5_K>(DType::kQ5_K, "Q5_K"),
    blocks<BlockQ6_K>(DType::kQ6_K, "Q6_K"),
    blocks<BlockIQ4_NL>(DType::kIQ4_NL, "IQ4_NL"),
    blocks<BlockIQ4_XS>(DType::kIQ4_XS, "IQ4_XS"),
    blocks<BlockMXFP4>(DType::kMXFP4, "MXFP4"),
};

constexpr bool table_follows_the_enumeration() {
    for (std::size_t index = 0; index < kInfos.size(); ++index)
        if (static_cast<std::size_t>(kInfos[index].dtype) != index) return false;
    return static_cast<std::size_t>(DType::kMXFP4) + 1 == kInfos.size();
}
static_assert(table_follows_the_enumeration());

}  // namespace

const DTypeInfo& info(DType dtype) {
    const auto index = static_cast<std::size_t>(dtype);
    CHECK(index < kInfos.size(), fmt::format("no element type has number {}", index));
    return kInfos[index];
}

std::optional<DType> dtype_from_name(std::string_view name) {
    for (const DTypeInfo& entry : kInfos)
        if (entry.name == name) return entry.dtype;
    return std::nullopt;
}

std::size_t row_bytes(DType dtype, std::int64_t values) {
    const DTypeInfo& entry = info(dtype);
    CHECK(values >= 0 && values % entry.block_values == 0,
          fmt::format("a row of {} values is not whole blocks of {} ({} values)", values,
                      entry.name, entry.block_values));
    return static_cast<std::size_t>(values / entry.block_values) *
           static_cast<std::size_t>(entry.block_bytes);
}

}  // namespace pagoda::tensor
