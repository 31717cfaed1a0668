// pagoda bench roof: what this machine can do at most.

#include <fmt/core.h>

#include "base/json.h"
#include "commands.h"
#include "kernel_choice.h"
#include "kernels/registry.h"
#include "kernels/roof.h"

namespace pagoda::apps {
namespace {

using base::Json;

Json pair(double one, double all) {
    Json json = Json::object();
    json.set("one", one);
    json.set("all", all);
    return json;
}

void print_row(std::string_view name, std::string_view unit, double one, double all) {
    if (all > 0)
        fmt::print("{:<16} {:>10.1f} {:>10.1f} {}\n", name, one, all, unit);
    else
        fmt::print("{:<16} {:>10} {:>10}\n", name, "-", "-");
}

ExitCode bench_roof(const Arguments& arguments) {
    const auto threads = arguments.integer("threads", base::ThreadTeam::allowed_cores(), 1, 1024);
    if (!threads) return bad_usage(threads.error());
    const auto variant = chosen_kernels();
    if (!variant) return bad_usage(variant.error());
    const auto team = base::ThreadTeam::start(static_cast<int>(*threads));
    if (!team) return fail(team.error());
    const kernels::DeviceContext device{.kernels = *variant, .team = team->get()};
    const kernels::Roof one = kernels::measure_roof(device, false);
    const kernels::Roof all = kernels::measure_roof(device, true);
    if (arguments.has("json")) {
        Json json = Json::object();
        json.set("int8_gops", pair(one.int8_gops, all.int8_gops));
        json.set("bf16_gflops", pair(one.bf16_gflops, all.bf16_gflops));
        json.set("f32_gflops", pair(one.f32_gflops, all.f32_gflops));
        json.set("read_gb_s", pair(one.read_gb_s, all.read_gb_s));
        fmt::print("{}\n", json.dump());
        return ExitCode::kSuccess;
    }
    fmt::print("{}, kernels {}\n{:<16} {:>10} {:>10}\n", kernels::cpu_model_name(),
               (*variant)->name, "", "1 thread", fmt::format("{} threads", *threads));
    print_row("int8", "Gop/s", one.int8_gops, all.int8_gops);
    print_row("bf16", "Gflop/s", one.bf16_gflops, all.bf16_gflops);
    print_row("f32", "Gflop/s", one.f32_gflops, all.f32_gflops);
    print_row("memory read", "GB/s", one.read_gb_s, all.read_gb_s);
    return ExitCode::kSuccess;
}

}  // namespace

CommandSpec bench_roof_command() {
    return {.name = "bench roof",
            .summary = "Measure this machine's arithmetic peaks and memory bandwidth",
            .options = {{"threads", "N", "threads of \"all\" (default: the allowed cores)"},
                        kJsonOption},
            .examples = "  pagoda bench roof\n  pagoda bench roof --json",
            .run = bench_roof};
}

}  // namespace pagoda::apps
