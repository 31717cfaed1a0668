// A step log that is read back: the same plans; and whatever was done to it, an error, a difference
// or equal plans, never anything else.

#include "sched/replay.h"

#include <random>

#include <gtest/gtest.h>

#include "sched/fake_executor_for_test.h"
#include "sched/prompts_for_test.h"

namespace pagoda::sched {
namespace {

using base::SeqId;
using Lines = std::vector<std::string>;

std::int64_t below(std::mt19937& random, std::int64_t end) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
}

SchedulerConfig some_config(std::mt19937& random, bool is_cached) {
    SchedulerConfig config;
    config.max_num_seqs = 1 + below(random, 8);
    config.max_num_batched_tokens = config.max_num_seqs + below(random, 120);
    config.max_queue = 100;
    config.max_model_len = 600;
    config.policy =
        std::array{PolicyKind::kFcfs, PolicyKind::kPriority, PolicyKind::kFair}[random() % 3];
    if (random() % 2 == 0) config.target_itl = std::chrono::milliseconds(1 + below(random, 8));
    config.groups = {{.num_blocks = 12 + below(random, 12), .window = 0}};
    if (random() % 2 == 0) config.groups.push_back({.num_blocks = 14, .window = 64});
    // A key of its own each time, which no log holds.
    if (is_cached)
        config.prefix_hasher = std::make_shared<const kv::PrefixHasher>(base::HashKey::random());
    return config;
}

// A scheduler at work, and its log.
class Logged {
  public:
    Logged(unsigned seed, bool is_cached)
        : random_(seed),
          config_(some_config(random_, is_cached)),
          scheduler_(config_),
          executor_(config_),
          prompts_(config_.prefix_hasher, [this](std::int64_t low, std::int64_t high) {
              return low + below(random_, high - low + 1);
          }) {
        lines_.push_back(header_line(config_));
    }

    void submit() {
        std::vector<SequenceSpec> specs(1 + random_() % 2);
        const std::int64_t num_prompt = 1 + below(random_, 120);
        for (SequenceSpec& spec : specs) {
            spec.seq = SeqId(next_++);
            spec.client = base::ClientId(~std::uint64_t{0} - random_() % 3);
            spec.num_prompt_tokens = num_prompt;
            spec.max_total_tokens = num_prompt + 1 + below(random_, 120);
            spec.priority = static_cast<std::int32_t>(random_() % 5) - 2;
            if (random_() % 8 == 0) spec.max_step_tokens = 1 + below(random_, 20);
            spec.computes_whole_prompt = random_() % 8 == 0;
            if (config_.prefix_hasher != nullptr && random_() % 8 > 0)
                spec.prefix = &spec != specs.data() ? specs[0].prefix : prompts_.next(num_prompt);
        }
        if (!scheduler_.submit(specs, now_).ok()) return;
        for (const SequenceSpec& spec : specs) executor_.add(spec, 1 + below(random_, 120));
        lines_.push_back(submit_line(specs, now_));
    }

    void cancel(bool is_finish) {
        const SeqId seq(random_() % (next_ + 1));
        is_finish ? scheduler_.finish(seq) : scheduler_.cancel(seq);
        lines_.push_back(is_finish ? finish_line(seq) : cancel_line(seq));
    }

    void step() {
        const StepPlan plan = scheduler_.plan();
        StepResult result = executor_.run(plan);
        if (!result.sequences.empty() && random_() % 20 == 0)
            result.sequences.back().finish = FinishReason::kError;
        for (const SequenceResult& part : result.sequences) {
            if (part.finish) prompts_.remember(executor_.tokens(part.seq));
        }
        if (plan.empty()) return;
        result.took = std::chrono::microseconds(100 * plan.num_tokens() + below(random_, 900));
        scheduler_.commit(plan, result);
        lines_.push_back(step_line(config_, plan, result));
        now_ += std::chrono::milliseconds(7);
    }

    void run(int num_steps) {
        for (int i = 0; i < num_steps; ++i) {
            if (random_() % 3 == 0) submit();
            if (random_() % 8 == 0) cancel(random_() % 2 == 0);
            if (random_() % 60 == 0) {
                scheduler_.reset_prefix_cache();
                lines_.push_back(reset_line());
            }
            step();
        }
        while (scheduler_.has_work()) step();
    }

    [[nodiscard]] const Lines& lines() const { return lines_; }
    [[nodiscard]] SchedulerStats stats() const { return scheduler_.stats(); }

  private:
    std::mt19937 random_;
    SchedulerConfig config_;
    Scheduler scheduler_;
    FakeExecutor executor_;
    PromptSource prompts_;
    base::TimePoint now_{};
    std::uint64_t next_ = 0;
    Lines lines_;
};

struct Outcome {
    std::string error;
    std::optional<ReplayDifference> difference;
    SchedulerStats stats;
    std::size_t num_steps = 0;
};

Outcome replay(const Lines& lines) {
    Outcome outcome;
    const auto without_newline = [](const std::string& line) {
        return std::string_view(line).substr(0, line.size() - 1);
    };
    auto config = parse_header_line(without_newline(lines.front()));
    if (!config) return {.error = config.error().message};
    Replay replay(*config, base::system_clock());
    for (std::size_t i = 1; i < lines.size(); ++i) {
        const auto event = parse_event_line(without_newline(lines[i]), *config);
        if (!event) return {.error = event.error().message};
        auto applied = replay.apply(*event);
        if (!applied) return {.error = applied.error().message};
        if (*applied) return {.difference = *applied};
        replay.check_invariants();
    }
    return {.stats = replay.stats(), .num_steps = replay.plan_times().size()};
}

TEST(Replay, OfALogPlansTheSameUnderAnotherKey) {
    SchedulerStats sum;
    for (unsigned seed = 0; seed < 40; ++seed) {
        SCOPED_TRACE(seed);
        Logged logged(seed, seed % 4 != 0);
        logged.run(200);
        const Outcome outcome = replay(logged.lines());
        ASSERT_EQ(outcome.error, "");
        ASSERT_FALSE(outcome.difference) << outcome.difference->field;
        const SchedulerStats stats = logged.stats();
        EXPECT_GT(outcome.num_steps, 100U);
        EXPECT_EQ(outcome.stats.num_computed_tokens, stats.num_computed_tokens);
        EXPECT_EQ(outcome.stats.num_cached_tokens, stats.num_cached_tokens);
        EXPECT_EQ(outcome.stats.num_preemptions, stats.num_preemptions);
        sum.num_cached_tokens += stats.num_cached_tokens;
        sum.num_preemptions += stats.num_preemptions;
        sum.num_evicted_blocks += stats.num_evicted_blocks;
    }
    // None of it is idle.
    EXPECT_GT(sum.num_cached_tokens, 5000U);
    EXPECT_GT(sum.num_preemptions, 20U);
    EXPECT_GT(sum.num_evicted_blocks, 300U);
}

// The line with the number that follows `member` set to another.
std::string with_changed(const std::string& line, const std::string& member) {
    const std::size_t at = line.find("\"" + member + "\":") + member.size() + 3;
    const std::size_t first = line.find_first_of("0123456789", at);
    std::string changed = line;
    changed[first] = line[first] == '9' ? '8' : '9';
    return changed;
}

TEST(Replay, FindsAnyNumberOfAPlanThatWasChanged) {
    Logged logged(3, true);
    logged.run(200);
    int num_changed = 0;
    for (const std::string member :
         {"first_position", "num_tokens", "new_blocks", "cached", "replaced", "copies", "evicted",
          "ended", "preempted", "passed_over", "seq"}) {
        SCOPED_TRACE(member);
        Lines lines = logged.lines();
        const auto is_step = [&](const std::string& line) {
            return line.starts_with("{\"event\":\"step\"") &&
                   line.find("\"" + member + "\":") != std::string::npos;
        };
        const auto found = std::find_if(lines.begin(), lines.end(), is_step);
        if (found == lines.end()) continue;
        *found = with_changed(*found, member);
        const Outcome outcome = replay(lines);
        ASSERT_TRUE(outcome.difference) << outcome.error;
        EXPECT_NE(outcome.difference->expected, outcome.difference->got);
        const std::string named = member == "seq" ? "sequences" : member;
        EXPECT_NE(outcome.difference->field.find(named), std::string::npos)
            << outcome.difference->field;
        ++num_changed;
    }
    EXPECT_GE(num_changed, 9);
}

TEST(Replay, FindsAStepThatIsMissing) {
    Logged logged(5, true);
    logged.run(50);
    Lines lines = logged.lines();
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (lines[i].find("\"step\":7,") == std::string::npos) continue;
        lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(i));
        const Outcome outcome = replay(lines);
        ASSERT_TRUE(outcome.difference) << outcome.error;
        EXPECT_EQ(outcome.difference->field, "step");
        EXPECT_EQ(outcome.difference->expected, "8");
        EXPECT_EQ(outcome.difference->got, "7");
        return;
    }
    FAIL() << "the log has no step 7";
}

// Changes, cuts and doubles bytes and lines anywhere.
Lines damage(Lines lines, std::mt19937& random) {
    constexpr std::string_view kBytes = "0123456789-.,:[]{}\"etf \\\x80\xff";
    std::string& line = lines[random() % std::min<std::size_t>(lines.size(), 60)];
    const std::size_t at = random() % line.size();
    switch (random() % 6) {
        case 0:
            line.erase(at, 1 + random() % 9);
            if (line.empty()) line = "\n";
            break;
        case 1:
            line.insert(at, line.substr(at, random() % 20));
            break;
        case 2:
            std::swap(line, lines[random() % lines.size()]);
            break;
        case 3:
            line.insert(at, "99999999999999999999", random() % 21);
            break;
        default:
            line[at] = kBytes[random() % kBytes.size()];
    }
    return lines;
}

TEST(Replay, OfADamagedLogIsRefusedOrDiffersAndNeverCrashes) {
    int num_errors = 0, num_differences = 0;
    for (unsigned seed = 0; seed < 6; ++seed) {
        Logged logged(seed, seed % 2 == 0);
        logged.run(40);
        std::mt19937 random(seed);
        for (int i = 0; i < 400; ++i) {
            const Outcome outcome = replay(damage(logged.lines(), random));
            num_errors += outcome.error.empty() ? 0 : 1;
            num_differences += outcome.difference ? 1 : 0;
        }
    }
    EXPECT_GT(num_errors, 1000);
    EXPECT_GT(num_differences, 200);
}

const std::string kHeader =
    "{\"pagoda_step_log\":1,\"max_num_seqs\":2,\"max_num_batched_tokens\":64,\"max_queue\":4,"
    "\"max_model_len\":100,\"policy\":\"fcfs\",\"priority_aging_ns\":1000000,"
    "\"has_prefix_cache\":true,\"groups\":[{\"num_blocks\":4,\"window\":0}]}\n";

std::string sequence(const std::string& fields) {
    return "{\"event\":\"submit\",\"time_ns\":0,\"sequences\":[{\"seq\":1,\"client\":"
           "\"0000000000000001\"," +
           fields + "}]}\n";
}

TEST(Replay, NamesWhatIsWrongWithALog) {
    const std::string submitted = sequence("\"num_prompt_tokens\":3,\"max_total_tokens\":9");
    const std::string planned =
        "{\"event\":\"step\",\"step\":0,\"sequences\":[{\"seq\":1,\"first_position\":0,"
        "\"num_tokens\":3,\"is_sampled\":true,\"is_restart\":true,\"new_blocks\":[[0,0]]}],";
    const std::pair<Lines, std::string> cases[] = {
        {{"{}\n"}, "the first line must be its header"},
        {{"{\"pagoda_step_log\":2}\n"}, "format version 2"},
        {{"{\"pagoda_step_log\":1}\n"}, "has no member max_num_seqs"},
        {{kHeader, "{\"event\":\"leap\"}\n"}, "event must be"},
        {{kHeader, "{\"event\":\"cancel\",\"seq\":-1}\n"}, "seq must be from 0"},
        {{kHeader, "{\"event\":\"cancel\",\"seq\":1,\"why\":2}\n"}, "not known: \"why\""},
        {{kHeader, "[1]\n"}, "must be an object"},
        {{kHeader, "{\"event\":\n"}, "line 1"},
        {{kHeader, submitted, submitted}, "submitted twice"},
        {{kHeader, sequence("\"num_prompt_tokens\":0,\"max_total_tokens\":9")}, "from 1"},
        {{kHeader, sequence("\"num_prompt_tokens\":9,\"max_total_tokens\":8")}, "from 9"},
        {{kHeader, sequence("\"num_prompt_tokens\":1,\"max_total_tokens\":8,\"prompt\":0")},
         "prompt must be from -1 to -1"},
        {{kHeader, submitted, planned + "\"results\":[]}\n"}, "1 sequences and 0 results"},
        {{kHeader, submitted, planned + "\"results\":[{}]}\n"}, "goes on without a token"},
        {{kHeader, submitted, planned + "\"results\":[{\"tokens\":[1,2]}]}\n"}, "not asked for"},
        {{kHeader, submitted, planned + "\"results\":[{\"finish\":\"bored\"}]}\n"}, "finish must"},
    };
    for (const auto& [lines, expected] : cases)
        EXPECT_NE(replay(lines).error.find(expected), std::string::npos)
            << lines.back() << replay(lines).error;
    const Outcome good =
        replay({kHeader, submitted, planned + "\"results\":[{\"tokens\":[7]}]}\n"});
    EXPECT_EQ(good.error, "");
    EXPECT_FALSE(good.difference) << good.difference->field << good.difference->got;
}

TEST(Replay, RefusesAHeaderThatWouldTakeTheMemory) {
    std::string header = kHeader;
    header.replace(header.find("\"num_blocks\":4"), 14, "\"num_blocks\":4000000000");
    EXPECT_NE(replay({header}).error.find("num_blocks must be"), std::string::npos);
}

TEST(StepLog, HoldsNoTokensWithoutAPrefixCache) {
    Logged logged(4, false);
    logged.run(50);
    for (const std::string& line : logged.lines())
        EXPECT_EQ(line.find("\"tokens\""), std::string::npos) << line;
}

}  // namespace
}  // namespace pagoda::sched
