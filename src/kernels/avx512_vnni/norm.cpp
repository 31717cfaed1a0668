#include "kernels/avx512_vnni/float_vec.h"
#include "kernels/avx512_vnni/variant.h"
#include "kernels/generic/norm_inl.h"

namespace pagoda::kernels::avx512_vnni {

void rms_norm(const RmsNormArgs& args) noexcept {
    rms_norm_rows<FloatVec>(args);
}

void layer_norm(const LayerNormArgs& args) noexcept {
    layer_norm_rows<FloatVec>(args);
}

}  // namespace pagoda::kernels::avx512_vnni
