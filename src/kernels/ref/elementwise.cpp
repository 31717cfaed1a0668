// Value by value. Specification: the cap is computed in double and rounded to float once; a sum is
// one float addition.

#include <cmath>

#include "kernels/args.h"

namespace pagoda::kernels::ref {

void soft_cap(const SoftCapArgs& args) noexcept {
    const double cap = args.cap;
    for (std::int64_t i = 0; i < args.count; ++i)
        args.x[i] = static_cast<float>(cap * std::tanh(args.x[i] / cap));
}

void add(const AddArgs& args) noexcept {
    for (std::int64_t i = 0; i < args.count; ++i) args.x[i] += args.y[i];
}

}  // namespace pagoda::kernels::ref
