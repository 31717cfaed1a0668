#pragma once
// The variants that are compiled in, and the choice among them. Thread-safe.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/kernels.h"

namespace pagoda::kernels {

// What this CPU and its operating system offer (CPUID and XGETBV).
[[nodiscard]] CpuFeature detect_cpu_features();
[[nodiscard]] std::string cpu_model_name();

// Every variant of this build, parents first, inherited entries filled in.
[[nodiscard]] std::span<const Kernels> all_variants();

// The best variant that `features` can run and make worthwhile, or the one named by `wanted` (the
// value of PAGODA_ISA; empty: the best). Errors: an unknown name, or one that this machine can't
// run; both list what can be had.
[[nodiscard]] base::Result<const Kernels*> choose_variant(std::string_view wanted,
                                                          CpuFeature features);

// Which variant provides each entry that is not null, for `pagoda kernels`: rows of {operator,
// provider}.
struct Provider {
    std::string_view op;
    std::string_view variant;
};
[[nodiscard]] std::vector<Provider> providers(const Kernels& kernels);

}  // namespace pagoda::kernels
