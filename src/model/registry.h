#pragma once
// The architectures that can be run: an explicit table, one reader each.

#include <span>
#include <string_view>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "model/decoder_spec.h"

namespace pagoda::model {

struct Architecture {
    std::string_view name;  // general.architecture
    base::Result<DecoderSpec> (*read)(const formats::Checkpoint& checkpoint);
};
[[nodiscard]] std::span<const Architecture> architectures();

// Errors: an architecture that is not known (lists those that are), a missing or contradictory
// hyperparameter, a RoPE scaling that is not known.
[[nodiscard]] base::Result<DecoderSpec> read_decoder_spec(const formats::Checkpoint& checkpoint);

}  // namespace pagoda::model
