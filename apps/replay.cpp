// pagoda replay: the plans of a step log, made again without a model.

#include "sched/replay.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include <fmt/core.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "commands.h"
#include "sched/step_log.h"

namespace pagoda::apps {
namespace {

using base::Error;
using base::ErrorCode;
using base::Json;

// A prompt of some million tokens is a line of so much.
constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;

// A file by lines, of which the last may be cut off: the server ended while it wrote it.
class Lines {
  public:
    explicit Lines(const std::string& path) : path_(path), stream_(path, std::ios::binary) {}

    [[nodiscard]] bool is_open() const { return stream_.is_open(); }
    // The next whole line, without its newline; nothing at the end.
    [[nodiscard]] base::Result<std::optional<std::string>> next() {
        std::string line;
        ++number_;
        for (int byte = stream_.get(); byte != std::char_traits<char>::eof();
             byte = stream_.get()) {
            if (byte == '\n') return std::optional(std::move(line));
            if (line.size() == kMaxLineBytes)
                return at({ErrorCode::kDataLoss,
                           fmt::format("longer than {} bytes, the limit", kMaxLineBytes)});
            line.push_back(static_cast<char>(byte));
        }
        if (stream_.bad()) return at({ErrorCode::kIo, "the file can't be read"});
        is_cut_off_ = !line.empty();
        return std::optional<std::string>();
    }
    // The error with file and line in front.
    [[nodiscard]] Error at(const Error& error) const {
        return {error.code,
                fmt::format("{}: line {}: {}", path_, number_, base::terminal_line(error.message))};
    }
    [[nodiscard]] std::int64_t number() const { return number_; }
    [[nodiscard]] bool is_cut_off() const { return is_cut_off_; }

  private:
    std::string path_;
    std::ifstream stream_;
    std::int64_t number_ = 0;
    bool is_cut_off_ = false;
};

struct Found {
    sched::ReplayDifference difference;
    std::int64_t line = 0;
};

// To the end, or to the first difference.
base::Result<std::optional<Found>> replay_events(Lines& lines, const sched::SchedulerConfig& config,
                                                 sched::Replay& replay) {
    while (true) {
        const auto line = lines.next();
        if (!line) return line.error();
        if (!*line) return std::optional<Found>();
        const auto event = sched::parse_event_line(**line, config);
        if (!event) return lines.at(event.error());
        auto difference = replay.apply(*event);
        if (!difference) return lines.at(difference.error());
        if (*difference) return std::optional(Found{**difference, lines.number()});
    }
}

double microseconds(const std::vector<base::Duration>& sorted, double share) {
    if (sorted.empty()) return 0;
    const auto last = static_cast<double>(sorted.size() - 1);
    return static_cast<double>(sorted[static_cast<std::size_t>(last * share)].count()) / 1e3;
}

Json summary(const Lines& lines, const sched::Replay& replay, const std::optional<Found>& found) {
    const sched::SchedulerStats stats = replay.stats();
    std::vector<base::Duration> times = replay.plan_times();
    std::sort(times.begin(), times.end());
    const auto number = [](std::uint64_t value) { return Json(static_cast<std::int64_t>(value)); };
    Json document = Json::object();
    document.set("steps", static_cast<std::int64_t>(times.size()))
        .set("sequences", replay.num_sequences())
        .set("computed_tokens", number(stats.num_computed_tokens))
        .set("output_tokens", replay.num_output_tokens())
        .set("cached_tokens", number(stats.num_cached_tokens))
        .set("evicted_blocks", number(stats.num_evicted_blocks))
        .set("preemptions", number(stats.num_preemptions))
        .set("recomputed_tokens", number(stats.num_recomputed_tokens))
        .set("plan_us_median", microseconds(times, 0.5))
        .set("plan_us_p99", microseconds(times, 0.99))
        .set("is_cut_off", lines.is_cut_off())
        .set("equal", !found.has_value());
    if (found)
        document.set("difference", Json::object()
                                       .set("line", found->line)
                                       .set("step", number(found->difference.step))
                                       .set("field", found->difference.field)
                                       .set("expected", found->difference.expected)
                                       .set("got", found->difference.got));
    return document;
}

// Of lists that may be long.
std::string shortened(const std::string& text) {
    constexpr std::size_t kMost = 400;
    return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
}

void print_text(const Json& document) {
    for (const auto& [name, value] : document.as_object()) {
        if (value.is_int()) fmt::print("{:<18} {}\n", name, value.as_int());
        if (value.type() == Json::Type::kDouble)
            fmt::print("{:<18} {:.1f}\n", name, value.as_double());
    }
    if (document.find("is_cut_off")->as_bool())
        fmt::print("the last line is cut off and was left out\n");
    const Json* difference = document.find("difference");
    if (difference == nullptr) return fmt::print("every plan is equal\n");
    fmt::print("the plan of step {} differs (line {}), in {}:\n  expected {}\n  got      {}\n",
               difference->find("step")->as_int(), difference->find("line")->as_int(),
               difference->find("field")->as_string(),
               shortened(difference->find("expected")->as_string()),
               shortened(difference->find("got")->as_string()));
}

ExitCode replay(const Arguments& arguments) {
    const std::string path = *arguments.positional("FILE");
    Lines lines(path);
    if (!lines.is_open())
        return fail({ErrorCode::kIo, fmt::format("{}: the file can't be opened", path)});
    const auto header = lines.next();
    if (!header) return fail(header.error());
    const auto config = sched::parse_header_line(header->value_or(""));
    if (!config) return fail(lines.at(config.error()));
    sched::Replay replay(*config, base::system_clock());
    const auto found = replay_events(lines, *config, replay);
    if (!found) return fail(found.error());
    const Json document = summary(lines, replay, *found);
    if (arguments.has("json"))
        fmt::print("{}\n", document.dump({.indent = 2}));
    else
        print_text(document);
    return *found ? ExitCode::kFailure : ExitCode::kSuccess;
}

}  // namespace

CommandSpec replay_command() {
    return {.name = "replay",
            .summary = "Make the plans of a server's step log again, without a model, and compare",
            .positionals = {{"FILE", "a log of pagoda serve --step-log FILE"}},
            .options = {kJsonOption},
            .examples =
                "  pagoda serve model.gguf --step-log steps.jsonl\n"
                "  pagoda replay steps.jsonl\n"
                "  pagoda replay steps.jsonl --json | jq .plan_us_p99\n"
                "The status is 0 if every plan is equal, 1 at the first that differs and for logs\n"
                "that are damaged, whose line is named.",
            .run = replay};
}

}  // namespace pagoda::apps
