#include "kernels/avx2/float_vec.h"
#include "kernels/avx2/variant.h"
#include "kernels/generic/rope_inl.h"

namespace pagoda::kernels::avx2 {

void rope(const RopeArgs& args) noexcept {
    rotate_rows<FloatVec>(args);
}

}  // namespace pagoda::kernels::avx2
