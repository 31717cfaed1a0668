#include "bench_prefix.h"

#include <algorithm>

#include <fmt/core.h>

#include "bench_options.h"
#include "matrix_work.h"
#include "model/registry.h"
#include "prefix_load.h"

namespace pagoda::apps {
namespace {

using base::Json;
constexpr double kMs = 1e3;  // a second

struct Row {
    PrefixShape shape;
    double step_seconds = 0;
    StepBound bound;

    [[nodiscard]] double share() const { return bound.seconds() / step_seconds; }
};

// Combinations that a step, the context or the KV cache can't hold are named and left out.
std::vector<Row> rows_that_fit(const PrefixBench& bench, const ModelSession& session) {
    const plan::MemoryPlan& plan = session.plan();
    const std::int64_t blocks =
        *std::min_element(plan.group_blocks.begin(), plan.group_blocks.end());
    std::vector<Row> rows;
    for (const std::int64_t prefix : bench.prefixes) {
        for (const std::int64_t output : bench.outputs) {
            for (const std::int64_t concurrency : bench.concurrencies) {
                const PrefixShape shape{.prefix_tokens = prefix,
                                        .concurrency = concurrency,
                                        .steps = output,
                                        .repeat = bench.repeat,
                                        .step_tokens = bench.step_tokens};
                if (shape.length() <= plan.max_model_len && shape.num_blocks() <= blocks &&
                    concurrency <= bench.step_tokens) {
                    rows.push_back({.shape = shape});
                    continue;
                }
                fmt::print(stderr,
                           "left out: {} sequences behind a prefix of {} take {} tokens each and "
                           "{} KV blocks in all; the context is {}, the cache holds {} blocks and "
                           "a step {} tokens\n",
                           concurrency, prefix, shape.length(), shape.num_blocks(),
                           plan.max_model_len, blocks, bench.step_tokens);
            }
        }
    }
    return rows;
}

Json row_json(const Row& row, std::optional<double> before) {
    Json json = Json::object();
    json.set("shared_prefix", row.shape.prefix_tokens);
    json.set("output_tokens", row.shape.steps);
    json.set("concurrency", row.shape.concurrency);
    json.set("step_ms", row.step_seconds * kMs);
    json.set("read_ms", row.bound.read_seconds * kMs);
    json.set("arithmetic_ms", row.bound.arithmetic_seconds * kMs);
    json.set("bound_ms", row.bound.seconds() * kMs);
    json.set("bound_share", row.share());
    if (before) json.set("baseline_bound_share", *before);
    return json;
}

void print_row(const Row& row, std::optional<double> before, bool is_compared) {
    fmt::print("{:>7} {:>6} {:>11} {:>8.1f} {:>8.1f} {:>13.1f} {:>8.1f} {:>11.2f}{}\n",
               row.shape.prefix_tokens, row.shape.steps, row.shape.concurrency,
               row.step_seconds * kMs, row.bound.read_seconds * kMs,
               row.bound.arithmetic_seconds * kMs, row.bound.seconds() * kMs, 1 / row.share(),
               is_compared ? fmt::format(" {:>8}", change_text(before, row.share())) : "");
    std::fflush(stdout);
}

}  // namespace

ExitCode run_prefix_bench(const PrefixBench& bench, ModelSession& session, BenchBaseline& baseline,
                          bool as_json) {
    std::vector<Row> rows = rows_that_fit(bench, session);
    if (rows.empty())
        return fail(base::invalid("no row fits; lower --shared-prefix or --concurrency"));
    const auto spec = model::read_decoder_spec(session.checkpoint());
    if (!spec) return fail(spec.error());
    auto runner = session.load_runner();
    if (!runner) return fail(runner.error());
    const kernels::Roof roof = kernels::measure_roof(session.device(), true);
    const MatrixWork work = matrix_work(session.checkpoint(), session.device(), roof);
    if (!as_json)
        fmt::print("{:>7} {:>6} {:>11} {:>8} {:>8} {:>13} {:>8} {:>11}{}\n", "prefix", "output",
                   "concurrency", "step ms", "read ms", "arithmetic ms", "bound ms", "step/bound",
                   baseline.is_compared() ? "   change" : "");
    Json list = Json::array();
    base::Status measured;
    std::uint64_t next_id = 1;
    for (Row& row : rows) {
        const auto seconds =
            prefix_step_seconds(**runner, row.shape, session.sizes(), session.device(), next_id);
        if (!seconds) {
            measured = seconds.error();
            break;
        }
        next_id += static_cast<std::uint64_t>(row.shape.concurrency) + 1;
        row.step_seconds = median(*seconds);
        row.bound = prefix_step_bound(row.shape, work, session.sizes(), *spec, roof);
        const auto before = baseline.record(
            fmt::format("shared prefix {} concurrency {} output {}", row.shape.prefix_tokens,
                        row.shape.concurrency, row.shape.steps),
            row.share());
        if (!as_json) print_row(row, before, baseline.is_compared());
        list.push_back(row_json(row, before));
    }
    if (as_json) fmt::print("{}\n", list.dump());
    // What was measured before a row failed is no worse for it.
    const base::Status finished = baseline.finish();
    if (!finished) fail(finished.error());
    if (!measured) fail(measured.error());
    return finished && measured ? ExitCode::kSuccess : ExitCode::kFailure;
}

}  // namespace pagoda::apps
