#pragma once
// The commands, one file each: what they take and how they run. The table is in main.cpp.

#include "command.h"

namespace pagoda::apps {

[[nodiscard]] CommandSpec serve_command();
[[nodiscard]] CommandSpec run_command();
[[nodiscard]] CommandSpec bench_engine_command();
[[nodiscard]] CommandSpec bench_kernels_command();
[[nodiscard]] CommandSpec bench_roof_command();
[[nodiscard]] CommandSpec bench_scheduler_command();
[[nodiscard]] CommandSpec bench_serve_command();
[[nodiscard]] CommandSpec tokenize_command();
[[nodiscard]] CommandSpec detokenize_command();
[[nodiscard]] CommandSpec template_command();
[[nodiscard]] CommandSpec perplexity_command();
[[nodiscard]] CommandSpec inspect_command();
[[nodiscard]] CommandSpec kernels_command();
[[nodiscard]] CommandSpec replay_command();
[[nodiscard]] CommandSpec version_command();

// What every command that runs a model takes besides its configuration keys.
inline constexpr OptionSpec kConfigOption = {"config", "FILE", "YAML file with settings"};
inline constexpr OptionSpec kPrintConfigOption = {"print-config", "",
                                                  "print the effective settings as YAML and exit"};
inline constexpr OptionSpec kVerboseOption = {"verbose", "", "say on standard error what is done"};
inline constexpr OptionSpec kJsonOption = {"json", "", "print one JSON document"};
inline constexpr PositionalSpec kModel = {"MODEL", "a .gguf file, the first one of a split model"};

}  // namespace pagoda::apps
