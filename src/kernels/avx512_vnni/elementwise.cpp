#include "kernels/avx512_vnni/float_vec.h"
#include "kernels/avx512_vnni/variant.h"
#include "kernels/generic/elementwise_inl.h"

namespace pagoda::kernels::avx512_vnni {

void soft_cap(const SoftCapArgs& args) noexcept {
    soft_cap_values<FloatVec>(args);
}

void add(const AddArgs& args) noexcept {
    add_values<FloatVec>(args);
}

}  // namespace pagoda::kernels::avx512_vnni
