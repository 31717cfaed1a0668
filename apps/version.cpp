// pagoda version: what this binary is.

#include <fmt/core.h>

#include "build_info.h"
#include "commands.h"
#include "kernel_choice.h"

namespace pagoda::apps {
namespace {

ExitCode version(const Arguments& arguments) {
    const auto variant = chosen_kernels();
    if (!variant) return bad_usage(variant.error());
    const BuildInfo info = build_info();
    if (arguments.has("json"))
        fmt::print("{}\n", version_json((*variant)->name).dump());
    else
        fmt::print("pagoda {} ({}), {} with {}, kernels {}\n", info.version, info.commit,
                   info.build_type, info.compiler, (*variant)->name);
    return ExitCode::kSuccess;
}

}  // namespace

CommandSpec version_command() {
    return {.name = "version",
            .summary = "Print version, commit, compiler and kernel variant",
            .options = {kJsonOption},
            .examples = "  pagoda version\n  pagoda version --json",
            .run = version};
}

}  // namespace pagoda::apps
