#include "kernels/ref/variant.h"
#include "kernels/ref/weight_group.h"

namespace pagoda::kernels::ref {

void dequantize(const DequantizeArgs& args) noexcept {
    const std::size_t row_bytes = tensor::row_bytes(args.dtype, args.cols);
    for (std::int64_t row = 0; row < args.rows; ++row)
        dequantize_run(args.dtype, args.source + static_cast<std::size_t>(row) * row_bytes, 0,
                       args.cols, args.out + row * args.cols);
}

}  // namespace pagoda::kernels::ref
