#include "kernels/avx2/float_vec.h"
#include "kernels/avx2/variant.h"
#include "kernels/generic/norm_inl.h"

namespace pagoda::kernels::avx2 {

void rms_norm(const RmsNormArgs& args) noexcept {
    rms_norm_rows<FloatVec>(args);
}

void layer_norm(const LayerNormArgs& args) noexcept {
    layer_norm_rows<FloatVec>(args);
}

}  // namespace pagoda::kernels::avx2
