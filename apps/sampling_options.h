#pragma once
// The flags that say how one answer is sampled, shared by commands and by the chat's /set.

#include <optional>
#include <span>
#include <vector>

#include "command.h"
#include "decode/sampling_params.h"
#include "serve/api/api_context.h"

namespace pagoda::apps {

struct SamplingOptions {
    decode::SamplingParams params;  // max_tokens 0: what the context leaves
    bool has_seed = false;
};
[[nodiscard]] std::span<const OptionSpec> sampling_options();
[[nodiscard]] base::Result<SamplingOptions> read_sampling_options(
    const Arguments& arguments, const api::SamplingDefaults& defaults);

// Changes one of them by its flag's name, as "temperature" to "0.5".
[[nodiscard]] base::Status set_sampling_option(std::string_view name, std::string_view value,
                                               SamplingOptions& options);

}  // namespace pagoda::apps
