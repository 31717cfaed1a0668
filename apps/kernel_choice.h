#pragma once
// Which kernels this process runs on.

#include "base/result.h"
#include "kernels/registry.h"

namespace pagoda::apps {

// The variant that PAGODA_ISA names, or the best of this machine when it names none. An error is
// one of usage: it names the variants that there are.
[[nodiscard]] base::Result<const kernels::Kernels*> chosen_kernels();

}  // namespace pagoda::apps
