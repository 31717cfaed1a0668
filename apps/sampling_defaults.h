#pragma once
// The sampling settings that a model's author recommends, from its file. Pure.

#include "base/result.h"
#include "formats/checkpoint.h"
#include "serve/api/api_context.h"

namespace pagoda::apps {

// From the keys general.sampling.*; what the file does not state stays OpenAI's. Errors name the
// key of a value that no sampler could use.
[[nodiscard]] base::Result<api::SamplingDefaults> read_sampling_defaults(
    const formats::Checkpoint& checkpoint);

}  // namespace pagoda::apps
