#pragma once
// From a command's arguments to its configuration.

#include "command.h"
#include "config.h"
#include "settings.h"

namespace pagoda::apps {

// Flags over the environment over --config FILE.
[[nodiscard]] base::Result<Config> load_config(const Arguments& arguments);

// The settings of a command that runs few sequences by itself: their number is its own business
// unless the user set it.
[[nodiscard]] base::Result<ModelSettings> local_model_settings(const Config& config,
                                                               std::int64_t num_sequences);

// The address names this machine alone.
[[nodiscard]] bool is_loopback(const std::string& host);

}  // namespace pagoda::apps
