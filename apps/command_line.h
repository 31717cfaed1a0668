#pragma once
// The command line: from argv to a command and its Arguments. The only place that knows the
// parsing library.

#include <optional>
#include <span>

#include "command.h"

namespace pagoda::apps {

struct ParsedCommand {
    const CommandSpec* command = nullptr;  // null: nothing to run, see status
    Arguments arguments;
    ExitCode status = ExitCode::kSuccess;
};

// Prints help to standard output, and what is wrong with the line to standard error.
[[nodiscard]] ParsedCommand parse_command_line(int argc, char** argv,
                                               std::span<const CommandSpec> commands);

}  // namespace pagoda::apps
