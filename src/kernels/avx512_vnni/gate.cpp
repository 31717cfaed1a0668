#include "kernels/avx512_vnni/float_vec.h"
#include "kernels/avx512_vnni/variant.h"
#include "kernels/generic/gate_inl.h"

namespace pagoda::kernels::avx512_vnni {

void gate(const GateArgs& args) noexcept {
    gate_any<FloatVec>(args);
}

}  // namespace pagoda::kernels::avx512_vnni
