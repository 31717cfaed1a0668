#pragma once
// The fields of 32 consecutive values of a block-quantised row, unpacked from the file's bits and
// otherwise as stored. weight_format.h says what they mean:
//
//   code value    c = format.values ? format.values[code] : code - format.zero
//   value[i]        = scale * half_scale[i / 16] * c + minimum * half_minimum[i / 16]
//
// Q8_0's signed codes are raised by 128; the minimum of the K types is negated, as they subtract
// theirs (x = d s q - dmin m).

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace pagoda::kernels {

struct GroupFields {
    std::uint8_t code[32] = {};
    std::int8_t half_scale[2] = {1, 1};
    std::uint8_t half_minimum[2] = {1, 1};
    std::uint16_t scale = 0;    // f16; bf16 for MXFP4
    std::uint16_t minimum = 0;  // f16
};

// Values [32 * group, 32 * group + 32) of `row`. REQUIRES: a block-quantised type.
GroupFields group_fields(tensor::DType dtype, const std::byte* row, std::int64_t group);

}  // namespace pagoda::kernels
