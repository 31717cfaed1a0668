#pragma once
// What the block-quantised types are made of, for everything that packs or multiplies them. Plain
// constants; adds no symbol to an object that evaluates them at compile time.

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/quant_block.h"

namespace pagoda::kernels {

enum class ScaleKind : std::uint8_t {
    kPlain,     // no blocks: F32, F16, BF16
    kHalf,      // one f16 for 32 values
    kExponent,  // one power of two for 32 values, exact in bf16 (MXFP4)
    kSuper32,   // f16 for 256 values times an integer for 32
    kSuper16,   // f16 for 256 values times an integer for 16
};

struct WeightFormat {
    int code_bits = 0;                    // of the unsigned code
    int zero = 0;                         // the code that stands for 0 ...
    const std::int8_t* values = nullptr;  // ... or what each code stands for
    ScaleKind scales = ScaleKind::kPlain;
    bool has_minimum = false;

    [[nodiscard]] constexpr bool is_super() const {
        return scales == ScaleKind::kSuper32 || scales == ScaleKind::kSuper16;
    }
};

// code_bits is 0 for types that are not block-quantised.
// static: objects of a variant must not share a copy of it with others.
static constexpr WeightFormat weight_format(tensor::DType dtype) {
    using enum ScaleKind;
    switch (dtype) {
        case tensor::DType::kQ4_0:
            return {4, 8, nullptr, kHalf, false};
        case tensor::DType::kQ4_1:
            return {4, 0, nullptr, kHalf, true};
        case tensor::DType::kQ5_0:
            return {5, 16, nullptr, kHalf, false};
        case tensor::DType::kQ5_1:
            return {5, 0, nullptr, kHalf, true};
        case tensor::DType::kQ8_0:
            return {8, 128, nullptr, kHalf, false};
        case tensor::DType::kIQ4_NL:
            return {4, 0, tensor::kIq4Values, kHalf, false};
        case tensor::DType::kMXFP4:
            return {4, 0, tensor::kMxfp4DoubledValues, kExponent, false};
        case tensor::DType::kQ2_K:
            return {2, 0, nullptr, kSuper16, true};
        case tensor::DType::kQ3_K:
            return {3, 4, nullptr, kSuper16, false};
        case tensor::DType::kQ4_K:
            return {4, 0, nullptr, kSuper32, true};
        case tensor::DType::kQ5_K:
            return {5, 0, nullptr, kSuper32, true};
        case tensor::DType::kQ6_K:
            return {6, 32, nullptr, kSuper16, false};
        case tensor::DType::kIQ4_XS:
            return {4, 0, tensor::kIq4Values, kSuper32, false};
        default:
            return {};
    }
}

}  // namespace pagoda::kernels
