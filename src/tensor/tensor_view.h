#pragma once
// TensorView: borrowed memory with a type and a shape. Row-major, the last dimension contiguous:
// a linear layer's weight is [out, in]. Whoever hands out a view says who owns the bytes.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor/dtype.h"

namespace pagoda::tensor {

struct TensorView {
    DType dtype = DType::kF32;
    std::vector<std::int64_t> shape;  // outermost first
    const std::byte* data = nullptr;
    std::size_t bytes = 0;

    [[nodiscard]] std::int64_t num_values() const {
        std::int64_t count = 1;
        for (const std::int64_t extent : shape) count *= extent;
        return count;
    }
    // Length of a row, and how many there are.
    [[nodiscard]] std::int64_t cols() const { return shape.empty() ? 1 : shape.back(); }
    [[nodiscard]] std::int64_t rows() const { return cols() == 0 ? 0 : num_values() / cols(); }
};

}  // namespace pagoda::tensor
