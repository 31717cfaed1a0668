#include "kernels/avx512_vnni/tile_vec.h"
#include "kernels/avx512_vnni/variant.h"
#include "kernels/generic/linear_f32_inl.h"

namespace pagoda::kernels::avx512_vnni {

void linear_f32(const LinearArgs& args) noexcept {
    linear_f32_any<TileVec>(args);
}

}  // namespace pagoda::kernels::avx512_vnni
