#include "kernels/ref/weight_group.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/group_fields.h"
#include "kernels/weight_format.h"
#include "tensor/half.h"

namespace pagoda::kernels::ref {
namespace {

std::uint16_t half_bits(const std::byte* row, std::int64_t index) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, row + index * 2, 2);
    return bits;
}

// NaN for a type that no weight has: nothing is read, and the mistake shows.
float plain_value(tensor::DType dtype, const std::byte* row, std::int64_t index) {
    switch (dtype) {
        case tensor::DType::kF32: {
            float value = 0;
            std::memcpy(&value, row + index * 4, 4);
            return value;
        }
        case tensor::DType::kF16:
            return tensor::f16_to_float(half_bits(row, index));
        case tensor::DType::kBF16:
            return tensor::bf16_to_float(half_bits(row, index));
        default:
            return std::numeric_limits<float>::quiet_NaN();
    }
}

}  // namespace

WeightGroup weight_group(tensor::DType dtype, const std::byte* row, std::int64_t group) {
    const WeightFormat format = weight_format(dtype);
    const GroupFields fields = group_fields(dtype, row, group);
    WeightGroup out;
    for (int i = 0; i < kGroup; ++i)
        out.code[i] =
            format.values != nullptr ? format.values[fields.code[i]] : fields.code[i] - format.zero;
    out.scale = format.scales == ScaleKind::kExponent ? tensor::bf16_to_float(fields.scale)
                                                      : tensor::f16_to_float(fields.scale);
    out.minimum = tensor::f16_to_float(fields.minimum);
    out.has_minimum = format.has_minimum;
    if (format.scales == ScaleKind::kSuper16) {
        std::copy_n(fields.half_scale, 2, out.half_scale);
        std::copy_n(fields.half_minimum, 2, out.half_minimum);
    } else {  // one integer for all 32: it joins the scale, exactly
        out.scale *= static_cast<float>(fields.half_scale[0]);
        out.minimum *= static_cast<float>(fields.half_minimum[0]);
    }
    return out;
}

void dequantize_run(tensor::DType dtype, const std::byte* row, std::int64_t begin,
                    std::int64_t count, float* out) {
    if (weight_format(dtype).scales == ScaleKind::kPlain) {
        for (std::int64_t i = 0; i < count; ++i) out[i] = plain_value(dtype, row, begin + i);
        return;
    }
    for (std::int64_t offset = 0; offset < count; offset += kGroup) {
        const WeightGroup group = weight_group(dtype, row, (begin + offset) / kGroup);
        for (int i = 0; i < kGroup; ++i) {
            const int half = i / kHalf;
            const float product =
                group.scale * static_cast<float>(group.half_scale[half] * group.code[i]);
            out[offset + i] =
                group.has_minimum
                    ? product + group.minimum * static_cast<float>(group.half_minimum[half])
                    : product;
        }
    }
}

}  // namespace pagoda::kernels::ref
