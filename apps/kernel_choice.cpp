#include "kernel_choice.h"

#include <cstdlib>

namespace pagoda::apps {

base::Result<const kernels::Kernels*> chosen_kernels() {
    const char* isa = std::getenv("PAGODA_ISA");
    return kernels::choose_variant(isa == nullptr ? "" : isa, kernels::detect_cpu_features());
}

}  // namespace pagoda::apps
