#pragma once
// Which kernels this process runs on.

#include <optional>
#include <string>

#include "base/result.h"
#include "kernels/registry.h"

namespace pagoda::apps {

// The variant that PAGODA_ISA names, or the best of this machine when it names none. An error is
// one of usage: it names the variants that there are.
[[nodiscard]] base::Result<const kernels::Kernels*> chosen_kernels();

// What to say of a CPU that leaves nothing but the scalar reference to run on; nothing of another,
// nor where the reference was asked for on one that has better.
[[nodiscard]] std::optional<std::string> slow_kernels_warning(const kernels::Kernels& chosen,
                                                              kernels::CpuFeature features);

}  // namespace pagoda::apps
