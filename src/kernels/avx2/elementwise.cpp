#include "kernels/avx2/float_vec.h"
#include "kernels/avx2/variant.h"
#include "kernels/generic/elementwise_inl.h"

namespace pagoda::kernels::avx2 {

void soft_cap(const SoftCapArgs& args) noexcept {
    soft_cap_values<FloatVec>(args);
}

void add(const AddArgs& args) noexcept {
    add_values<FloatVec>(args);
}

}  // namespace pagoda::kernels::avx2
