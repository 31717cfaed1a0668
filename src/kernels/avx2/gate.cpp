#include "kernels/avx2/float_vec.h"
#include "kernels/avx2/variant.h"
#include "kernels/generic/gate_inl.h"

namespace pagoda::kernels::avx2 {

void gate(const GateArgs& args) noexcept {
    gate_any<FloatVec>(args);
}

}  // namespace pagoda::kernels::avx2
