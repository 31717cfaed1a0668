#include "kernels/avx_vnni/variant.h"
#include "kernels/weight_format.h"

namespace pagoda::kernels::avx_vnni {

// Two files, so that they compile side by side.
void linear_int8(const LinearArgs& args) noexcept {
    const ScaleKind scales = weight_format(args.weight.dtype).scales;
    if (scales == ScaleKind::kSuper32 || scales == ScaleKind::kSuper16)
        return linear_int8_supers(args);
    linear_int8_blocks(args);
}

}  // namespace pagoda::kernels::avx_vnni
