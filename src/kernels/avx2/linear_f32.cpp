#include "kernels/avx2/tile_vec.h"
#include "kernels/avx2/variant.h"
#include "kernels/generic/linear_f32_inl.h"

namespace pagoda::kernels::avx2 {

void linear_f32(const LinearArgs& args) noexcept {
    linear_f32_any<TileVec>(args);
}

}  // namespace pagoda::kernels::avx2
