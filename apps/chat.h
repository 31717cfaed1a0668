#pragma once
// The chat in a terminal: line editing with history, answers as they come, commands that begin
// with a slash. Ctrl-C stops an answer; at the prompt it clears the line, and twice on an empty
// one it leaves, as Ctrl-D does.

#include <string>

#include "command.h"
#include "model_session.h"
#include "sampling_options.h"

namespace pagoda::apps {

// Until the user leaves. An empty `system` is none.
ExitCode chat(ModelSession& session, SamplingOptions options, const std::string& system);

}  // namespace pagoda::apps
