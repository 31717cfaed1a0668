// Types with blocks of 32 values.

#include "kernels/avx_vnni/tile_vec.h"
#include "kernels/avx_vnni/variant.h"
#include "kernels/generic/linear_int8_inl.h"

namespace pagoda::kernels::avx_vnni {

void linear_int8_blocks(const LinearArgs& args) noexcept {
    using tensor::DType;
    switch (args.weight.dtype) {
        case DType::kQ4_0:
            return linear_int8_of<TileVec, DType::kQ4_0>(args);
        case DType::kQ4_1:
            return linear_int8_of<TileVec, DType::kQ4_1>(args);
        case DType::kQ5_0:
            return linear_int8_of<TileVec, DType::kQ5_0>(args);
        case DType::kQ5_1:
            return linear_int8_of<TileVec, DType::kQ5_1>(args);
        case DType::kQ8_0:
            return linear_int8_of<TileVec, DType::kQ8_0>(args);
        case DType::kIQ4_NL:
            return linear_int8_of<TileVec, DType::kIQ4_NL>(args);
        case DType::kMXFP4:
            return linear_int8_of<TileVec, DType::kMXFP4>(args);
        default:
            return;
    }
}

}  // namespace pagoda::kernels::avx_vnni
