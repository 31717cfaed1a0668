#pragma once
// The architectures that can be run: an explicit table, one reader each. Constant; thread-safe.

#include <span>
#include <string_view>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "model/arch/hyperparameters.h"
#include "model/decoder_spec.h"

namespace pagoda::model {

struct Architecture {
    std::string_view name;  // general.architecture
    // Faults are recorded in `keys`, whose finish() says whether the spec is valid.
    DecoderSpec (*read)(arch::Hyperparameters& keys);
};
[[nodiscard]] std::span<const Architecture> architectures();

// Errors: an architecture that is not known (lists those that are), a hyperparameter that is
// missing, out of range, contradicts another, or is not known.
[[nodiscard]] base::Result<DecoderSpec> read_decoder_spec(const formats::Checkpoint& checkpoint);

}  // namespace pagoda::model
