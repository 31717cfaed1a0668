// pagoda bench serve: load on a server, and what its clients notice.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>

#include <fmt/core.h>
#include <unistd.h>

#include "base/json.h"
#include "base/terminal_text.h"
#include "bench_options.h"
#include "commands.h"
#include "loadgen/load.h"
#include "loadgen/report.h"
#include "signal_watch.h"
#include "text_input.h"

namespace pagoda::apps {
namespace {

using base::Json;
using loadgen::LoadProgress;
using loadgen::Report;
using loadgen::Spread;

constexpr std::int64_t kMillion = 1'000'000;
constexpr double kMostMilliseconds = 1e9;

struct ServeBench {
    loadgen::Target target;
    loadgen::Arrivals arrivals;
    loadgen::Targets targets;
    std::unique_ptr<loadgen::Workload> workload;
};

base::Duration seconds_of(double seconds) {
    return std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(seconds));
}

// Options that another one leaves without meaning are refused.
base::Status check_together(const Arguments& arguments) {
    const auto refuse = [&](std::string_view option, std::string_view reason) -> base::Status {
        if (!arguments.has(option)) return {};
        return base::invalid(fmt::format("--{} has no meaning {}", option, reason),
                             std::string(option));
    };
    base::Status status;
    const auto all = [&](std::initializer_list<std::string_view> options, std::string_view reason) {
        for (const std::string_view option : options) {
            if (status.ok()) status = refuse(option, reason);
        }
    };
    if (arguments.has("rate")) all({"concurrency"}, "beside --rate");
    if (arguments.has("trace"))
        all({"rate", "concurrency", "chats", "prompt-tokens", "output-tokens", "shared-prefix",
             "spread"},
            "with --trace, which has times and lengths of its own");
    if (!arguments.has("trace")) all({"speed"}, "without --trace");
    if (arguments.has("chats")) {
        all({"shared-prefix", "prompt-tokens"},
            "with --chats, whose prompts are what was said; see --system-tokens and "
            "--question-tokens");
    } else {
        all({"applications", "system-tokens", "question-tokens", "turns"}, "without --chats");
    }
    return status;
}

base::Result<std::unique_ptr<loadgen::Workload>> read_workload(const Arguments& arguments,
                                                               Numbers& numbers) {
    const auto seed = static_cast<std::uint64_t>(numbers.integer("seed", 0, 0, INT64_MAX));
    if (const auto path = arguments.value("trace"); path) {
        const auto text = read_text_file(*path);
        if (!text) return text.error();
        return loadgen::read_trace(*text);
    }
    if (arguments.has("chats")) {
        loadgen::ChatShape shape;
        shape.num_applications =
            numbers.integer("applications", shape.num_applications, 1, kMillion);
        shape.system_tokens = numbers.integer("system-tokens", shape.system_tokens, 1, kMillion);
        shape.question_tokens =
            numbers.integer("question-tokens", shape.question_tokens, 1, kMillion);
        shape.answer_tokens = numbers.integer("output-tokens", shape.answer_tokens, 1, kMillion);
        shape.mean_turns = numbers.number("turns", shape.mean_turns, 1, 1000);
        shape.spread = numbers.number("spread", shape.spread, 0, 3);
        return loadgen::chats(shape, seed);
    }
    loadgen::PromptShape shape;
    shape.prompt_tokens = numbers.integer("prompt-tokens", shape.prompt_tokens, 1, kMillion);
    shape.output_tokens = numbers.integer("output-tokens", shape.output_tokens, 1, kMillion);
    shape.shared_tokens = numbers.integer("shared-prefix", shape.shared_tokens, 0, kMillion);
    shape.spread = numbers.number("spread", shape.spread, 0, 3);
    if (shape.shared_tokens >= shape.prompt_tokens)
        return base::invalid(fmt::format("--shared-prefix must be less than --prompt-tokens ({}), "
                                         "got {}",
                                         shape.prompt_tokens, shape.shared_tokens),
                             "shared-prefix");
    return loadgen::prompts(shape, seed);
}

base::Result<ServeBench> read_bench(const Arguments& arguments) {
    if (const auto status = check_together(arguments); !status) return status.error();
    ServeBench bench;
    Numbers numbers(arguments);
    bench.target = {.url = arguments.value("url").value_or("http://127.0.0.1:8080"),
                    .model = arguments.value("model").value_or(""),
                    .api_key = arguments.value("api-key").value_or(""),
                    .is_chat = !arguments.has("completions"),
                    .ignores_eos = !arguments.has("until-eos"),
                    .temperature = numbers.number("temperature", 0, 0, 2),
                    .time_limit = seconds_of(numbers.number("request-timeout", 0, 0, 1e6))};
    if (bench.target.url.find("://") == std::string::npos)
        return base::invalid(
            fmt::format("--url must begin with http:// or https://, got {}", bench.target.url),
            "url");
    loadgen::Arrivals& arrivals = bench.arrivals;
    const std::int64_t fallback = arguments.has("trace") ? 100 * kMillion : 100;
    arrivals.num_requests = numbers.integer("requests", fallback, 1, 100 * kMillion);
    arrivals.time_limit = seconds_of(numbers.number("duration", 0, 0, 1e6));
    if (arrivals.time_limit.count() > 0 && !arguments.has("requests"))
        arrivals.num_requests = 100 * kMillion;
    if (arguments.has("rate"))
        arrivals.rate = numbers.number("rate", 1, 1e-3, 1e5);
    else if (!arguments.has("trace"))
        arrivals.num_clients = numbers.integer("concurrency", 8, 1, 4096);
    arrivals.static_batch = numbers.integer("static-batch", 0, 0, 4096);
    arrivals.speed = numbers.number("speed", 1, 1e-3, 1e5);
    const auto target = [&](std::string_view option) -> std::optional<double> {
        if (!arguments.has(option)) return std::nullopt;
        return numbers.number(option, 0, 0, kMostMilliseconds);
    };
    bench.targets = {.ttft_ms = target("slo-ttft-ms"), .tpot_ms = target("slo-tpot-ms")};
    auto workload = read_workload(arguments, numbers);
    if (!workload) return workload.error();
    bench.workload = *std::move(workload);
    arrivals.seed = static_cast<std::uint64_t>(numbers.integer("seed", 0, 0, INT64_MAX));
    if (!numbers.status()) return numbers.status().error();
    return bench;
}

// One line on a terminal that redraws itself; elsewhere a line every ten seconds.
class LiveLine {
  public:
    void draw(const LoadProgress& progress) {
        const double elapsed = std::chrono::duration<double>(progress.elapsed).count();
        constexpr double kEvery = 10;
        constexpr double kEveryOnTerminal = 0.5;
        if (elapsed - drawn_at_ < (is_terminal_ ? kEveryOnTerminal : kEvery)) return;
        const double recent = static_cast<double>(progress.num_pieces - num_pieces_) /
                              std::max(elapsed - drawn_at_, 1e-9);
        drawn_at_ = elapsed;
        num_pieces_ = progress.num_pieces;
        fmt::print(stderr,
                   "{}{:5.0f} s  {} done, {} failed, {} running, {} waiting, {:.0f} tok/s{}",
                   is_terminal_ ? "\r\x1b[K" : "", elapsed,
                   progress.num_ended - progress.num_failed, progress.num_failed, progress.num_sent,
                   progress.num_waiting, recent, is_terminal_ ? "" : "\n");
        std::fflush(stderr);
        is_open_ = is_terminal_;
    }
    ~LiveLine() {
        if (is_open_) fmt::print(stderr, "\r\x1b[K");
    }
    LiveLine() = default;
    LiveLine(const LiveLine&) = delete;
    LiveLine& operator=(const LiveLine&) = delete;

  private:
    const bool is_terminal_ = isatty(STDERR_FILENO) == 1;
    double drawn_at_ = 0;
    std::int64_t num_pieces_ = 0;
    bool is_open_ = false;
};

void set_spread(Json& document, std::string_view name, const Spread& spread) {
    document.set(fmt::format("mean_{}_ms", name), spread.mean)
        .set(fmt::format("median_{}_ms", name), spread.median)
        .set(fmt::format("p90_{}_ms", name), spread.p90)
        .set(fmt::format("p99_{}_ms", name), spread.p99)
        .set(fmt::format("max_{}_ms", name), spread.most);
}

Json json_of(const Report& report, std::int64_t num_left_out) {
    Json errors = Json::object();
    for (const auto& [message, count] : report.errors) errors.set(message, count);
    Json document = Json::object();
    document.set("completed", report.num_completed)
        .set("failed", report.num_failed)
        .set("left_out", num_left_out)
        .set("duration", report.duration_s)
        .set("total_input_tokens", report.num_prompt_tokens)
        .set("total_cached_tokens", report.num_cached_tokens)
        .set("total_output_tokens", report.num_output_tokens)
        .set("request_throughput", report.per_second(report.num_completed))
        .set("request_goodput", report.per_second(report.num_good))
        .set("output_throughput", report.per_second(report.num_output_tokens))
        .set("total_token_throughput",
             report.per_second(report.num_prompt_tokens + report.num_output_tokens));
    set_spread(document, "ttft", report.ttft);
    set_spread(document, "tpot", report.tpot);
    set_spread(document, "itl", report.itl);
    set_spread(document, "e2el", report.e2el);
    return document.set("errors", std::move(errors));
}

void print_text(const Report& report, std::int64_t num_left_out) {
    fmt::print("{} requests completed in {:.1f} s, {} failed", report.num_completed,
               report.duration_s, report.num_failed);
    if (num_left_out > 0) fmt::print(", {} not ended and left out", num_left_out);
    const double cached = report.num_prompt_tokens == 0
                              ? 0
                              : 100.0 * static_cast<double>(report.num_cached_tokens) /
                                    static_cast<double>(report.num_prompt_tokens);
    fmt::print("\n{} prompt tokens ({:.0f} % cached), {} output tokens\n\n",
               report.num_prompt_tokens, cached, report.num_output_tokens);
    fmt::print("{:<12} {:>10.2f} requests/s, {:.2f} within the targets\n", "throughput",
               report.per_second(report.num_completed), report.per_second(report.num_good));
    fmt::print("{:<12} {:>10.1f} output tokens/s\n\n", "",
               report.per_second(report.num_output_tokens));
    fmt::print("{:<12} {:>10} {:>10} {:>10} {:>10} {:>10}\n", "ms", "mean", "median", "p90", "p99",
               "max");
    const auto row = [](std::string_view name, const Spread& spread) {
        fmt::print("{:<12} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f}\n", name, spread.mean,
                   spread.median, spread.p90, spread.p99, spread.most);
    };
    row("TTFT", report.ttft);
    row("TPOT", report.tpot);
    row("ITL", report.itl);
    row("end to end", report.e2el);
    for (const auto& [message, count] : report.errors)
        fmt::print("{} x {}\n", count, base::terminal_line(message));
}

ExitCode bench_serve(const Arguments& arguments) {
    auto bench = read_bench(arguments);
    if (!bench) return bad_usage(bench.error());
    const loadgen::CurlSession curl;
    if (bench->target.model.empty()) {
        auto model = loadgen::first_model(bench->target);
        if (!model) return fail(model.error());
        bench->target.model = *std::move(model);
    }
    std::atomic<bool> is_stopped = false;
    loadgen::LoadResult result;
    {
        const auto watch = SignalWatch::start([&is_stopped] { is_stopped = true; });
        if (!watch) return fail(watch.error());
        LiveLine line;
        result = loadgen::run_load(bench->target, bench->arrivals, *bench->workload,
                                   base::system_clock(), [&](const LoadProgress& progress) {
                                       line.draw(progress);
                                       return !is_stopped;
                                   });
    }
    const Report report = loadgen::report_of(result, bench->targets);
    if (arguments.has("json"))
        fmt::print("{}\n", json_of(report, result.num_left_out).dump({.indent = 2}));
    else
        print_text(report, result.num_left_out);
    if (report.num_completed > 0) return ExitCode::kSuccess;
    return fail({base::ErrorCode::kIo, "no request was answered whole"});
}

}  // namespace

CommandSpec bench_serve_command() {
    return {
        .name = "bench serve",
        .summary = "Put load on a server of the OpenAI API and measure what clients notice",
        .options =
            {{"url", "URL", "the server (default: http://127.0.0.1:8080)"},
             {"model", "NAME", "the model (default: the first that the server lists)"},
             {"api-key", "KEY", "sent as a bearer token"},
             {"completions", "", "ask /v1/completions instead of /v1/chat/completions"},
             {"requests", "N", "requests in all (default: 100)"},
             {"duration", "S", "seconds in which requests arrive (default: until all have)"},
             {"concurrency", "N", "clients that ask again when they are answered (default: 8)"},
             {"rate", "X", "Poisson arrivals in a second, whether answered or not"},
             {"static-batch", "N",
              "send what has arrived only when nothing is being answered, so many at once at "
              "most: how a server without continuous batching would serve"},
             {"prompt-tokens", "N", "mean of a prompt, in words (default: 512)"},
             {"output-tokens", "N", "mean of an answer (default: 128; of chats 150)"},
             {"shared-prefix", "N", "words with which all prompts begin (default: 0)"},
             {"spread", "X",
              "deviation of the logarithm of lengths (default: 0, all are equal; of chats 0.6)"},
             {"chats", "", "chats of several turns, whose system prompts are shared"},
             {"applications", "N", "system prompts, by Zipf's law (default: 8)"},
             {"system-tokens", "N", "mean of a system prompt (default: 600)"},
             {"question-tokens", "N", "mean of what a user says (default: 60)"},
             {"turns", "X", "mean of a chat's turns (default: 5)"},
             {"trace", "FILE",
              "requests with times: JSON lines of timestamp (ms), input_length, output_length and "
              "hash_ids (blocks of 512 tokens)"},
             {"speed", "X", "how much faster than the trace (default: 1)"},
             {"slo-ttft-ms", "X", "time to first token, at most, to count as goodput"},
             {"slo-tpot-ms", "X", "time per output token, at most, to count as goodput"},
             {"temperature", "X", "0 to 2 (default: 0)"},
             {"until-eos", "", "answers end where the model ends them (ignore_eos is not sent)"},
             {"request-timeout", "S", "seconds after which a request has failed (default: none)"},
             {"seed", "N", "of texts, lengths and arrivals (default: 0)"},
             kJsonOption},
        .examples =
            "  pagoda bench serve --concurrency 32 --prompt-tokens 512 --output-tokens 128\n"
            "  pagoda bench serve --url https://host/v1 --api-key KEY --rate 4 --duration 60 "
            "--slo-ttft-ms 500 --slo-tpot-ms 50\n"
            "  pagoda bench serve --chats --concurrency 32 --requests 200\n"
            "  pagoda bench serve --chats --concurrency 32 --requests 200 --static-batch 32",
        .run = bench_serve};
}

}  // namespace pagoda::apps
