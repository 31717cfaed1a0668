// pagoda version: what this binary is.

#include <cstdlib>

#include <fmt/core.h>

#include "build_info.h"
#include "commands.h"
#include "kernels/registry.h"

namespace pagoda::apps {
namespace {

ExitCode version(const Arguments& arguments) {
    const char* isa = std::getenv("PAGODA_ISA");
    const auto variant =
        kernels::choose_variant(isa == nullptr ? "" : isa, kernels::detect_cpu_features());
    if (!variant) return fail(variant.error());
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
