// pagoda bench scheduler: what the scheduler itself costs, without a model.

#include <algorithm>
#include <numeric>
#include <string>

#include <fmt/core.h>

#include "base/json.h"
#include "bench_options.h"
#include "commands.h"
#include "scheduler_load.h"

namespace pagoda::apps {
namespace {

using base::Json;
using std::chrono::duration;

struct SchedulerBench {
    sched::SchedulerConfig config;
    SchedulerLoad load;
};

base::Result<SchedulerBench> read_bench(const Arguments& arguments) {
    constexpr std::int64_t kMillion = 1'000'000;
    SchedulerBench bench;
    SchedulerLoad& load = bench.load;
    Numbers numbers(arguments);
    load.num_requests = numbers.integer("requests", load.num_requests, 1, 100 * kMillion);
    load.num_queued = numbers.integer("queued", load.num_queued, 1, kMillion);
    load.prompt_tokens = numbers.integer("prompt-tokens", load.prompt_tokens, 1, kMillion);
    load.output_tokens = numbers.integer("output-tokens", load.output_tokens, 1, kMillion);
    load.shared_tokens = numbers.integer("shared-prefix", load.shared_tokens, 0, kMillion);
    sched::SchedulerConfig& config = bench.config;
    config.max_num_seqs = numbers.integer("running", 256, 1, 4096);
    config.max_num_batched_tokens = numbers.integer("step-tokens", 2048, 1, 65536);
    config.groups = {{.num_blocks = numbers.integer("blocks", 16'384, 1, 4 * kMillion)}};
    load.rate = numbers.number("rate", 0, 0, 1e6);
    if (!numbers.status()) return numbers.status().error();
    constexpr double kLeastRate = 1e-3;
    if (load.rate > 0 && load.rate < kLeastRate)
        return base::invalid(
            fmt::format("--rate must be 0 or at least {}, got {}", kLeastRate, load.rate), "rate");
    const auto policy = sched::parse_policy(arguments.value("policy").value_or("fair"));
    if (!policy) return policy.error();
    config.policy = *policy;
    config.max_queue = load.num_queued;
    config.max_model_len = longest_request(load);
    if (!arguments.has("no-prefix-cache"))
        config.prefix_hasher = std::make_shared<const kv::PrefixHasher>(base::HashKey({}));
    if (const auto valid = sched::validate(config); !valid) return valid.error();
    const auto fits = sched::can_ever_run(
        config, {.num_prompt_tokens = 1, .max_total_tokens = config.max_model_len});
    if (!fits) return base::invalid(fits.error().message, "blocks");
    return bench;
}

double at_share(std::vector<base::Duration> times, double share) {
    if (times.empty()) return 0;
    const auto place = static_cast<std::ptrdiff_t>(static_cast<double>(times.size() - 1) * share);
    std::nth_element(times.begin(), times.begin() + place, times.end());
    return duration<double, std::micro>(times[static_cast<std::size_t>(place)]).count();
}

double seconds_of(const std::vector<base::Duration>& times) {
    return duration<double>(std::accumulate(times.begin(), times.end(), base::Duration{})).count();
}

Json report(const SchedulerBench& bench, const SchedulerFigures& figures) {
    const sched::SchedulerStats& stats = figures.stats;
    const auto number = [](std::uint64_t value) { return Json(static_cast<std::int64_t>(value)); };
    const double planning = seconds_of(figures.plans);
    const double scheduling =
        planning + seconds_of(figures.commits) + duration<double>(figures.submits).count();
    Json document = Json::object();
    document.set("requests", bench.load.num_requests)
        .set("steps", figures.num_steps)
        .set("mean_running", figures.mean_running)
        .set("computed_tokens", number(stats.num_computed_tokens))
        .set("cached_tokens", number(stats.num_cached_tokens))
        .set("preemptions", number(stats.num_preemptions))
        .set("simulated_s", duration<double>(figures.simulated).count())
        .set("plans_per_s", static_cast<double>(figures.num_steps) / std::max(planning, 1e-9))
        .set("plan_us_median", at_share(figures.plans, 0.5))
        .set("plan_us_p99", at_share(figures.plans, 0.99))
        .set("commit_us_median", at_share(figures.commits, 0.5))
        .set("commit_us_p99", at_share(figures.commits, 0.99))
        .set("steps_at_depth", static_cast<std::int64_t>(figures.plans_at_depth.size()))
        .set("plan_at_depth_us_median", at_share(figures.plans_at_depth, 0.5))
        .set("plan_at_depth_us_p99", at_share(figures.plans_at_depth, 0.99))
        .set("scheduling_s", scheduling)
        .set("million_requests_s", scheduling * 1e6 / static_cast<double>(bench.load.num_requests));
    return document;
}

void print_text(const SchedulerBench& bench, const Json& document) {
    for (const auto& [name, value] : document.as_object()) {
        if (value.is_int()) fmt::print("{:<24} {}\n", name, value.as_int());
        if (value.type() == Json::Type::kDouble)
            fmt::print("{:<24} {:.1f}\n", name, value.as_double());
    }
    fmt::print("at depth: {} run, {} wait\n", bench.config.max_num_seqs, bench.load.num_queued);
}

ExitCode bench_scheduler(const Arguments& arguments) {
    const auto bench = read_bench(arguments);
    if (!bench) return bad_usage(bench.error());
    const SchedulerFigures figures =
        run_scheduler_load(bench->config, bench->load, base::system_clock());
    const Json document = report(*bench, figures);
    if (arguments.has("json"))
        fmt::print("{}\n", document.dump({.indent = 2}));
    else
        print_text(*bench, document);
    return ExitCode::kSuccess;
}

}  // namespace

CommandSpec bench_scheduler_command() {
    return {.name = "bench scheduler",
            .summary = "Measure what the scheduler itself takes, without a model",
            .options = {{"requests", "N", "requests in all (default: 20000)"},
                        {"running", "N", "sequences in one step (default: 256)"},
                        {"queued", "N", "requests that wait, at most (default: 10000)"},
                        {"rate", "X",
                         "arrivals in a second of the simulation, in which a step takes 5 ms and "
                         "20 us for each token (default: the queue is kept full)"},
                        {"prompt-tokens", "N", "mean of a prompt (default: 256)"},
                        {"output-tokens", "N", "mean of an answer (default: 128)"},
                        {"shared-prefix", "N",
                         "tokens with which one of 16 applications begins its prompts (default: "
                         "128)"},
                        {"step-tokens", "N", "tokens of a step (default: 2048)"},
                        {"blocks", "N", "KV blocks of 32 tokens (default: 16384)"},
                        {"policy", "NAME", "fcfs, priority or fair (default: fair)"},
                        {"no-prefix-cache", "", "every prompt is computed"},
                        kJsonOption},
            .examples =
                "  pagoda bench scheduler\n"
                "  pagoda bench scheduler --requests 1000000 --json\n"
                "  pagoda bench scheduler --rate 50 --policy fcfs",
            .run = bench_scheduler};
}

}  // namespace pagoda::apps
