// pagoda bench engine: how fast this machine runs a model, and as what share of its roof.

#include <algorithm>

#include <fmt/core.h>

#include "bench_baseline.h"
#include "bench_options.h"
#include "bench_prefix.h"
#include "commands.h"
#include "engine_load.h"
#include "kernels/registry.h"
#include "matrix_work.h"
#include "model_config.h"
#include "model_session.h"

namespace pagoda::apps {
namespace {

using base::Json;

struct Row {
    std::int64_t concurrency = 1, depth = 0, prompt_tokens = 0, output_tokens = 0;
    std::optional<double> prefill_rate, prefill_share;  // none: lost in noise
    double decode_rate = 0, decode_share = 0;
};

struct Bench {
    std::int64_t repeat = 0;
    std::int64_t step_tokens = 0;  // max_num_batched_tokens
    std::vector<std::int64_t> prompts, outputs, concurrencies, depths;

    [[nodiscard]] LoadShape shape(const Row& row) const {
        LoadShape shape{.concurrency = row.concurrency,
                        .prompt_tokens = row.depth + row.prompt_tokens};
        shape.output_tokens = decode_output_tokens(shape, step_tokens, repeat * row.output_tokens);
        return shape;
    }
    // Positions that one sequence of a row takes.
    [[nodiscard]] std::int64_t length(const Row& row) const {
        return shape(row).prompt_tokens + shape(row).output_tokens;
    }
    [[nodiscard]] std::vector<Row> rows() const {
        std::vector<Row> all;
        for (const std::int64_t prompt : prompts) {
            for (const std::int64_t output : outputs) {
                for (const std::int64_t depth : depths) {
                    for (const std::int64_t concurrency : concurrencies)
                        all.push_back({.concurrency = concurrency,
                                       .depth = depth,
                                       .prompt_tokens = prompt,
                                       .output_tokens = output});
                }
            }
        }
        return all;
    }
};

base::Result<Bench> read_bench(const Arguments& arguments) {
    constexpr std::int64_t kMostTokens = 1 << 20;
    auto prompts = integer_list(arguments, "prompt-tokens", "512", 1, kMostTokens);
    if (!prompts) return prompts.error();
    auto outputs = integer_list(arguments, "output-tokens", "64", 1, kMostTokens);
    if (!outputs) return outputs.error();
    const auto repeat = arguments.integer("repeat", 3, 1, 100);
    if (!repeat) return repeat.error();
    auto concurrencies = integer_list(arguments, "concurrency", "1,4,8,16,32", 1, 4096);
    if (!concurrencies) return concurrencies.error();
    auto depths = integer_list(arguments, "depth", "0,4096", 0, kMostTokens);
    if (!depths) return depths.error();
    return Bench{.repeat = *repeat,
                 .prompts = std::move(prompts).value(),
                 .outputs = std::move(outputs).value(),
                 .concurrencies = std::move(concurrencies).value(),
                 .depths = std::move(depths).value()};
}

// Prefill of prompt_tokens behind `depth` others: the time of all less the time of those before,
// each the median of its runs. Nothing when noise is larger than the difference.
base::Result<std::optional<double>> prefill_rate(engine::Engine& engine, const Bench& bench,
                                                 const Row& row) {
    std::vector<double> whole;
    std::vector<double> before;
    for (std::int64_t run = 0; run < bench.repeat; ++run) {
        const auto all = prefill_seconds(engine, bench.shape(row));
        if (!all) return all.error();
        whole.push_back(*all);
        if (row.depth == 0) continue;
        const auto part =
            prefill_seconds(engine, {.concurrency = row.concurrency, .prompt_tokens = row.depth});
        if (!part) return part.error();
        before.push_back(*part);
    }
    const double took = median(whole) - (before.empty() ? 0 : median(before));
    if (took <= 0) return std::optional<double>();
    return std::optional(static_cast<double>(row.concurrency * row.prompt_tokens) / took);
}

base::Status measure_row(engine::Engine& engine, const Bench& bench, const MatrixWork& work,
                         const kernels::Roof& roof, Row& row) {
    constexpr double kGiga = 1e9;
    const auto prefill = prefill_rate(engine, bench, row);
    if (!prefill) return prefill.error();
    const auto decode = decode_rates(engine, bench.shape(row), row.output_tokens, bench.repeat);
    if (!decode) return decode.error();
    row.prefill_rate = *prefill;
    if (*prefill) row.prefill_share = **prefill * work.layer_seconds;
    row.decode_rate = median(*decode);
    // A single sequence reads all weights for every token; more of them share the reading.
    row.decode_share = row.concurrency == 1
                           ? row.decode_rate * work.weight_bytes / (roof.read_gb_s * kGiga)
                           : row.decode_rate * (work.layer_seconds + work.head_seconds);
    return {};
}

// What the shares of the roof were in an earlier run.
struct Before {
    std::optional<double> prefill_share, decode_share;
};

Before record(BenchBaseline& baseline, const Row& row) {
    const std::string key = fmt::format("depth {} concurrency {} prompt {} output {}", row.depth,
                                        row.concurrency, row.prompt_tokens, row.output_tokens);
    Before before;
    if (row.prefill_share)
        before.prefill_share = baseline.record(key + " prefill", *row.prefill_share);
    before.decode_share = baseline.record(key + " decode", row.decode_share);
    return before;
}

Json row_json(const Row& row, const Before& before) {
    Json json = Json::object();
    json.set("prompt_tokens", row.prompt_tokens);
    json.set("output_tokens", row.output_tokens);
    json.set("concurrency", row.concurrency);
    json.set("depth", row.depth);
    json.set("prefill_tok_s", row.prefill_rate ? Json(*row.prefill_rate) : Json());
    json.set("decode_tok_s", row.decode_rate);
    json.set("prefill_share", row.prefill_share ? Json(*row.prefill_share) : Json());
    json.set("decode_share", row.decode_share);
    if (before.prefill_share) json.set("baseline_prefill_share", *before.prefill_share);
    if (before.decode_share) json.set("baseline_decode_share", *before.decode_share);
    return json;
}

// Rows that the context or the KV cache can't hold are named and left out.
std::vector<Row> rows_that_fit(const Bench& bench, const ModelSession& session) {
    constexpr std::int64_t kBlock = kernels::kBlockTokens;
    std::vector<Row> rows;
    for (const Row& row : bench.rows()) {
        const std::int64_t length = bench.length(row);
        const std::int64_t wanted = (length + kBlock - 1) / kBlock * kBlock * row.concurrency;
        if (length <= session.plan().max_model_len && wanted <= session.plan().kv_tokens) {
            rows.push_back(row);
            continue;
        }
        fmt::print(stderr,
                   "left out: depth {} with {} sequences takes {} tokens each, the context is {} "
                   "and the KV cache holds {}\n",
                   row.depth, row.concurrency, length, session.plan().max_model_len,
                   session.plan().kv_tokens);
    }
    return rows;
}

void print_header(bool is_compared) {
    const std::string_view change = is_compared ? "   change" : "";
    fmt::print("{:>6} {:>7} {:>6} {:>11} {:>14} {:>8}{} {:>14} {:>8}{}\n", "depth", "prompt",
               "output", "concurrency", "prefill tok/s", "share", change, "decode tok/s", "share",
               change);
}

void print_row(const Row& row, const Before& before, bool is_compared) {
    const auto change = [&](std::optional<double> earlier, double now) {
        return is_compared ? fmt::format(" {:>8}", change_text(earlier, now)) : std::string();
    };
    const std::string prefill =
        row.prefill_rate
            ? fmt::format("{:>14.1f} {:>7.1f}%{}", *row.prefill_rate, *row.prefill_share * 100,
                          change(before.prefill_share, *row.prefill_share))
            : fmt::format("{:>14} {:>8}{}", "too noisy", "-", is_compared ? "        -" : "");
    fmt::print("{:>6} {:>7} {:>6} {:>11} {} {:>14.1f} {:>7.1f}%{}\n", row.depth, row.prompt_tokens,
               row.output_tokens, row.concurrency, prefill, row.decode_rate, row.decode_share * 100,
               change(before.decode_share, row.decode_share));
    std::fflush(stdout);
}

// The roof is measured before the engine takes the threads.
ExitCode run_rows(const Bench& bench, ModelSession& session, BenchBaseline& baseline,
                  bool as_json) {
    std::vector<Row> rows = rows_that_fit(bench, session);
    if (rows.empty()) return fail(base::invalid("no row fits; lower --depth or --concurrency"));
    const kernels::Roof roof = kernels::measure_roof(session.device(), true);
    const MatrixWork work = matrix_work(session.checkpoint(), session.device(), roof);
    if (const auto status = session.start(session.default_name()); !status)
        return fail(status.error());
    Json list = Json::array();
    if (!as_json) print_header(baseline.is_compared());
    base::Status measured;
    for (Row& row : rows) {
        measured = measure_row(session.engine(), bench, work, roof, row);
        if (!measured) break;
        const Before before = record(baseline, row);
        if (!as_json) print_row(row, before, baseline.is_compared());
        if (as_json)
            fmt::print(stderr, "measured depth {} with {} sequences\n", row.depth, row.concurrency);
        list.push_back(row_json(row, before));
    }
    if (as_json) fmt::print("{}\n", list.dump());
    // What was measured before a row failed is no worse for it.
    const base::Status finished = baseline.finish();
    if (!finished) fail(finished.error());
    if (!measured) fail(measured.error());
    return finished && measured ? ExitCode::kSuccess : ExitCode::kFailure;
}

// --shared-prefix, or nothing.
base::Result<std::optional<PrefixBench>> read_prefix_bench(const Arguments& arguments,
                                                           const Bench& bench) {
    if (!arguments.has("shared-prefix")) return std::optional<PrefixBench>();
    constexpr std::int64_t kMostTokens = 1 << 20;
    for (const std::string_view other : {"prompt-tokens", "depth"}) {
        if (arguments.has(other))
            return base::invalid(fmt::format(
                "--{} and --shared-prefix: the prefix is all that its sequences begin with",
                other));
    }
    auto prefixes = integer_list(arguments, "shared-prefix", "", 1, kMostTokens);
    if (!prefixes) return prefixes.error();
    for (const std::int64_t prefix : *prefixes) {
        if (prefix % kernels::kBlockTokens != 0)
            return base::invalid(
                fmt::format("--shared-prefix: {} is not a multiple of the {} tokens of a block",
                            prefix, kernels::kBlockTokens));
    }
    return std::optional(PrefixBench{.repeat = bench.repeat,
                                     .step_tokens = bench.step_tokens,
                                     .prefixes = std::move(prefixes).value(),
                                     .outputs = bench.outputs,
                                     .concurrencies = bench.concurrencies});
}

ExitCode bench_engine(const Arguments& arguments) {
    const auto config = load_config(arguments);
    if (!config) return bad_usage(config.error());
    auto bench = read_bench(arguments);
    if (!bench) return bad_usage(bench.error());
    const std::int64_t most =
        *std::max_element(bench->concurrencies.begin(), bench->concurrencies.end());
    auto settings = local_model_settings(*config, most);
    if (!settings) return bad_usage(settings.error());
    if (most > settings->budget.max_num_seqs)
        return bad_usage(base::invalid(fmt::format("--concurrency is {}, max_num_seqs {}", most,
                                                   settings->budget.max_num_seqs)));
    settings->scheduler.max_queue = std::max(settings->scheduler.max_queue, most);
    // Prefill and decoding are measured apart: unless told, no prompt is cut for those that decode.
    if (config->is_default("target_itl_ms")) settings->scheduler.target_itl = {};
    bench->step_tokens = settings->budget.max_num_batched_tokens;
    const auto prefix_bench = read_prefix_bench(arguments, *bench);
    if (!prefix_bench) return bad_usage(prefix_bench.error());
    base::Logger logger({.level = base::LogLevel::kWarning});
    auto session = ModelSession::open(*arguments.positional("MODEL"), *settings, logger);
    if (!session) return fail(session.error());
    fmt::print(stderr, "{}\n", (*session)->describe());
    // A share of one model says nothing about another's.
    auto baseline = BenchBaseline::open(
        arguments,
        fmt::format("{}, kernels {}, {} threads, {}", kernels::cpu_model_name(),
                    (*session)->device().kernels->name, (*session)->device().team->num_threads(),
                    (*session)->default_name()));
    if (!baseline) return bad_usage(baseline.error());
    const bool as_json = arguments.has("json");
    return *prefix_bench ? run_prefix_bench(**prefix_bench, **session, *baseline, as_json)
                         : run_rows(*bench, **session, *baseline, as_json);
}

}  // namespace

CommandSpec bench_engine_command() {
    return {.name = "bench engine",
            .summary = "Measure prefill and decode, without a server",
            .positionals = {kModel},
            .options = {{"prompt-tokens", "N,N", "tokens of a prompt (default: 512)"},
                        {"output-tokens", "N,N", "tokens of a decode measurement (default: 64)"},
                        {"concurrency", "N,N", "sequences at once (default: 1,4,8,16,32)"},
                        {"depth", "N,N", "tokens before the prompt (default: 0,4096)"},
                        {"shared-prefix", "N,N",
                         "measure decode steps of sequences that begin with the same N tokens of "
                         "KV, in ms, and their bound: the longer of two times, that of reading "
                         "weights and distinct KV once at read bandwidth, and that of all products "
                         "at the peak of their arithmetic"},
                        {"repeat", "N", "runs, of which the median counts (default: 3)"},
                        kBaselineOption,
                        kMaxDropOption,
                        kSaveBaselineOption,
                        kJsonOption,
                        kConfigOption},
            .config_uses = kUsesModel,
            .examples =
                "  pagoda bench engine model.gguf\n"
                "  pagoda bench engine model.gguf --concurrency 1,8 --depth 0 --json\n"
                "  pagoda bench engine model.gguf --concurrency 32 --shared-prefix 2048,8192",
            .run = bench_engine};
}

}  // namespace pagoda::apps
