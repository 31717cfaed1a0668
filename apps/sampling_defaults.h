#pragma once
// The sampling settings that a model's author recommends, from its file. Pure.

#include <string>
#include <vector>

#include "base/result.h"
#include "formats/checkpoint.h"
#include "serve/api/api_context.h"

namespace pagoda::apps {

struct ModelSampling {
    api::SamplingDefaults defaults;
    std::vector<std::string> not_applied;  // keys of settings that this version does not have
};

// From the keys general.sampling.*; what the file does not state stays OpenAI's. Errors name the
// key of a value that no sampler could use.
[[nodiscard]] base::Result<ModelSampling> read_model_sampling(
    const formats::Checkpoint& checkpoint);

}  // namespace pagoda::apps
