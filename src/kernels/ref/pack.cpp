// The reference keeps the rows as the file stores them.

#include <cstring>

#include "kernels/ref/variant.h"

namespace pagoda::kernels::ref {

std::size_t packed_bytes(tensor::DType dtype, std::int64_t out, std::int64_t in) {
    return static_cast<std::size_t>(out) * tensor::row_bytes(dtype, in);
}

void pack(const PackArgs& args) noexcept {
    const std::size_t row_bytes = tensor::row_bytes(args.dtype, args.in_features);
    const std::size_t begin = static_cast<std::size_t>(args.column_begin) * row_bytes;
    const std::size_t end = static_cast<std::size_t>(args.column_end) * row_bytes;
    if (end > begin) std::memcpy(args.packed + begin, args.source + begin, end - begin);
}

}  // namespace pagoda::kernels::ref
