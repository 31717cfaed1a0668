#pragma once
// How K and V values are kept in a KV block: one row a type, and every size and offset of the
// layout (drawn at PagedKvView in args.h) follows from it. Plain constants; adds no symbol to an
// object that evaluates them at compile time.

#include <cstddef>
#include <cstdint>

#include "kernels/args.h"

namespace pagoda::kernels {

struct KvFormat {
    const char* name;     // as kv_cache_dtype has it
    int value_bits;       // of a stored value
    int lane_values;      // 32 / value_bits: values in the four bytes that are one lane of a vector
    int scale_bytes = 0;  // of the f32 that a token's values of one head share; 0: there is none
};

// static: objects of a variant must not share a copy of it with others.
static constexpr KvDType kKvDTypes[] = {KvDType::kBF16, KvDType::kF32, KvDType::kInt8};

static constexpr KvFormat kv_format(KvDType dtype) {
    switch (dtype) {
        case KvDType::kF32:
            return {.name = "f32", .value_bits = 32, .lane_values = 1};
        case KvDType::kBF16:
            return {.name = "bf16", .value_bits = 16, .lane_values = 2};
        case KvDType::kInt8:
            return {.name = "int8", .value_bits = 8, .lane_values = 4, .scale_bytes = 4};
    }
    return {.name = "", .value_bits = 32, .lane_values = 1};
}

}  // namespace pagoda::kernels
