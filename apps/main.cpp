// pagoda: the table of commands.

#include <array>
#include <csignal>
#include <cstdio>

#include "command_line.h"
#include "commands.h"
#include "formats/mapped_file.h"

int main(int argc, char** argv) {
    namespace apps = pagoda::apps;
    // A reader that goes away is an error of the write, not the end of the process.
    std::signal(SIGPIPE, SIG_IGN);
    pagoda::formats::install_truncation_guard();
    const std::array commands = {apps::serve_command(),           apps::run_command(),
                                 apps::tokenize_command(),        apps::detokenize_command(),
                                 apps::template_command(),        apps::perplexity_command(),
                                 apps::inspect_command(),         apps::kernels_command(),
                                 apps::bench_roof_command(),      apps::version_command(),
                                 apps::bench_engine_command(),    apps::bench_kernels_command(),
                                 apps::bench_scheduler_command(), apps::bench_serve_command(),
                                 apps::replay_command()};
    const apps::ParsedCommand parsed = apps::parse_command_line(argc, argv, commands);
    const apps::ExitCode status =
        parsed.command == nullptr ? parsed.status : parsed.command->run(parsed.arguments);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        return static_cast<int>(
            apps::fail({pagoda::base::ErrorCode::kIo, "standard output can't be written"}));
    return static_cast<int>(status);
}
