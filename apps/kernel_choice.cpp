#include "kernel_choice.h"

#include <cstdlib>

#include <fmt/core.h>

namespace pagoda::apps {

base::Result<const kernels::Kernels*> chosen_kernels() {
    const char* isa = std::getenv("PAGODA_ISA");
    return kernels::choose_variant(isa == nullptr ? "" : isa, kernels::detect_cpu_features());
}

std::optional<std::string> slow_kernels_warning(const kernels::Kernels& chosen,
                                                kernels::CpuFeature features) {
    const auto best = kernels::choose_variant("", features);
    if (!best || *best != &chosen || chosen.parent != nullptr) return std::nullopt;
    return fmt::format(
        "this CPU ({}) lacks what the fast kernels need, on x86-64 AVX2, FMA, F16C and BMI2; the "
        "scalar kernels run, which are many times slower",
        kernels::cpu_model_name());
}

}  // namespace pagoda::apps
