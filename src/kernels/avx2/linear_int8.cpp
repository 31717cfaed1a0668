#include "kernels/avx2/tile_vec.h"
#include "kernels/avx2/variant.h"
#include "kernels/generic/linear_int8_inl.h"

namespace pagoda::kernels::avx2 {

void linear_int8(const LinearArgs& args) noexcept {
    linear_int8_any<TileVec>(args);
}

}  // namespace pagoda::kernels::avx2
