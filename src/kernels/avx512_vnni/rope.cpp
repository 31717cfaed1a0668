#include "kernels/avx512_vnni/float_vec.h"
#include "kernels/avx512_vnni/variant.h"
#include "kernels/generic/rope_inl.h"

namespace pagoda::kernels::avx512_vnni {

void rope(const RopeArgs& args) noexcept {
    rotate_rows<FloatVec>(args);
}

}  // namespace pagoda::kernels::avx512_vnni
