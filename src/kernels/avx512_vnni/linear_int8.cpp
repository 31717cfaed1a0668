#include "kernels/avx512_vnni/tile_vec.h"
#include "kernels/avx512_vnni/variant.h"
#include "kernels/generic/linear_int8_inl.h"

namespace pagoda::kernels::avx512_vnni {

void linear_int8(const LinearArgs& args) noexcept {
    linear_int8_any<TileVec>(args);
}

}  // namespace pagoda::kernels::avx512_vnni
