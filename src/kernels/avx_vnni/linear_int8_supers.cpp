// Types with super-blocks of 256 values.

#include "kernels/avx_vnni/tile_vec.h"
#include "kernels/avx_vnni/variant.h"
#include "kernels/generic/linear_int8_inl.h"

namespace pagoda::kernels::avx_vnni {

void linear_int8_supers(const LinearArgs& args) noexcept {
    using tensor::DType;
    switch (args.weight.dtype) {
        case DType::kQ2_K:
            return linear_int8_of<TileVec, DType::kQ2_K>(args);
        case DType::kQ3_K:
            return linear_int8_of<TileVec, DType::kQ3_K>(args);
        case DType::kQ4_K:
            return linear_int8_of<TileVec, DType::kQ4_K>(args);
        case DType::kQ5_K:
            return linear_int8_of<TileVec, DType::kQ5_K>(args);
        case DType::kQ6_K:
            return linear_int8_of<TileVec, DType::kQ6_K>(args);
        case DType::kIQ4_XS:
            return linear_int8_of<TileVec, DType::kIQ4_XS>(args);
        default:
            return;
    }
}

}  // namespace pagoda::kernels::avx_vnni
