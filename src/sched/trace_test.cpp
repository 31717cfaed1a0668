// Scenarios as text, tests/traces/*.trace: what is submitted, and the plan that each step must
// make. The form is described in tests/traces/README.md.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "sched/fake_executor_for_test.h"

namespace pagoda::sched {
namespace {

using base::SeqId;
using Fields = std::map<std::string, std::string>;

std::int64_t number(const Fields& fields, const char* key, std::int64_t otherwise) {
    const auto found = fields.find(key);
    return found == fields.end() ? otherwise : std::stoll(found->second);
}

class Trace {
  public:
    // Runs a whole file; the message of the first line that failed, or nothing.
    std::string run(const std::filesystem::path& path) {
        std::ifstream file(path);
        std::string line;
        for (int number = 1; std::getline(file, line); ++number) {
            const std::string failure = run_line(line.substr(0, line.find('#')));
            if (!failure.empty()) {
                return path.filename().string() + ":" + std::to_string(number) + ": " + failure;
            }
            if (scheduler_) scheduler_->check_invariants();
        }
        return scheduler_ ? "" : path.filename().string() + " has no config line";
    }

  private:
    std::string run_line(const std::string& line) {
        std::istringstream words(line);
        std::string verb;
        if (!(words >> verb)) return "";
        if (verb == "config") return configure(words);
        if (!scheduler_) return "the config line must come first";
        if (verb == "submit") return submit(words);
        if (verb == "step") return expect_step(words);
        if (verb == "reset") return scheduler_->reset_prefix_cache(), "";
        std::string argument;
        if (!(words >> argument)) return verb + " needs an argument";
        if (verb == "cancel") return scheduler_->cancel(ids_.at(argument)), "";
        if (verb == "wait") return now_ += std::chrono::milliseconds(std::stoll(argument)), "";
        if (verb == "used") return expect_blocks(std::stoll(argument), stats().num_blocks_used);
        if (verb == "cached") return expect_blocks(std::stoll(argument), stats().num_blocks_cached);
        if (verb == "skip") {
            for (std::int64_t left = std::stoll(argument); left > 0; --left) step();
            return "";
        }
        return "unknown verb " + verb;
    }

    static Fields fields_of(std::istringstream& words) {
        Fields fields;
        for (std::string word; words >> word;) {
            const std::size_t sign = word.find('=');
            fields[word.substr(0, sign)] = sign == word.npos ? "" : word.substr(sign + 1);
        }
        return fields;
    }

    std::string configure(std::istringstream& words) {
        const Fields fields = fields_of(words);
        SchedulerConfig config;
        config.policy = parse_policy(fields.at("policy")).value();
        config.max_num_seqs = number(fields, "seqs", 8);
        config.max_num_batched_tokens = number(fields, "budget", 64);
        config.max_model_len = 100'000;
        config.priority_aging = std::chrono::milliseconds(number(fields, "aging", 30'000));
        config.groups.push_back({number(fields, "blocks", 16), 0});
        if (fields.contains("window")) {
            config.groups.push_back(
                {number(fields, "window_blocks", 16), number(fields, "window", 0)});
        }
        if (fields.contains("cache"))
            config.prefix_hasher = std::make_shared<const kv::PrefixHasher>(base::HashKey({}));
        hasher_ = config.prefix_hasher;
        executor_ = std::make_unique<FakeExecutor>(config);
        scheduler_ = std::make_unique<Scheduler>(config);
        return "";
    }

    std::string submit(std::istringstream& words) {
        std::string name;
        words >> name;
        const Fields fields = fields_of(words);
        SequenceSpec spec;
        spec.seq = SeqId(ids_.size() + 1);
        spec.client = base::ClientId(static_cast<std::uint64_t>(number(fields, "client", 0)));
        spec.num_prompt_tokens = number(fields, "prompt", 1);
        const std::int64_t outputs = number(fields, "outputs", 1000);
        spec.max_total_tokens = number(fields, "total", spec.num_prompt_tokens + outputs);
        spec.priority = static_cast<std::int32_t>(number(fields, "priority", 0));
        spec.max_step_tokens = number(fields, "cap", 0);
        spec.computes_whole_prompt = fields.contains("whole");
        if (hasher_ != nullptr) spec.prefix = prompt_of(spec, fields);
        const base::Status status = scheduler_->submit({&spec, 1}, now_);
        if (fields.contains("refused")) return status.ok() ? name + " was not refused" : "";
        if (!status.ok()) return status.error().message;
        executor_->add(spec, outputs);
        if (spec.prefix != nullptr) tokens_[name] = *spec.prefix->tokens;
        ids_[name] = spec.seq;
        names_[spec.seq] = name;
        return "";
    }

    // Tokens of its own, behind those that it has in common with `like` (prompt and outputs).
    std::shared_ptr<const kv::PromptKeys> prompt_of(const SequenceSpec& spec,
                                                    const Fields& fields) {
        std::vector<base::TokenId> tokens;
        if (const auto like = fields.find("like"); like != fields.end()) {
            tokens = tokens_.at(like->second);
            tokens.resize(std::min(tokens.size(),
                                   static_cast<std::size_t>(number(fields, "common", 1'000'000))));
        }
        while (std::ssize(tokens) < spec.num_prompt_tokens)
            tokens.push_back(static_cast<base::TokenId>(1000 * (1 + spec.seq.value)));
        tokens.resize(static_cast<std::size_t>(spec.num_prompt_tokens));
        const auto salt = fields.find("salt");
        return std::make_shared<const kv::PromptKeys>(
            hasher_->keys(salt == fields.end() ? "" : salt->second,
                          std::make_shared<const std::vector<base::TokenId>>(std::move(tokens))));
    }

    StepPlan step() {
        const StepPlan plan = scheduler_->plan();
        scheduler_->commit(plan, executor_->run(plan));
        for (const auto& [name, seq] : ids_) {
            if (executor_->knows(seq)) tokens_[name] = executor_->tokens(seq);
        }
        return plan;
    }

    std::string expect_step(std::istringstream& words) {
        std::string expected;
        for (std::string word; words >> word;) expected += (expected.empty() ? "" : " ") + word;
        const std::string planned = text_of(step());
        return planned == expected ? "" : "expected: " + expected + "\n  planned: " + planned;
    }

    SchedulerStats stats() const { return scheduler_->stats(); }

    static std::string expect_blocks(std::int64_t expected, std::int64_t actual) {
        return actual == expected ? "" : "there are " + std::to_string(actual) + " blocks";
    }

    std::string text_of(const StepPlan& plan) {
        std::string text;
        const auto add = [&](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
        for (const SequencePlan& part : plan.sequences) {
            add(names_.at(part.seq) + ":" + std::to_string(part.first_position) + "+" +
                std::to_string(part.num_tokens) + (part.is_restart ? "^" : "") +
                (part.is_sampled ? "!" : ""));
        }
        for (const SeqId seq : plan.preempted) add("~" + names_.at(seq));
        for (const PassedOver& over : plan.passed_over) {
            add(names_.at(over.seq) + "<" + std::to_string(over.by));
        }
        for (const SeqId seq : plan.ended) add("-" + names_.at(seq));
        if (!plan.evicted.empty()) add("x" + std::to_string(plan.evicted.size()));
        return text;
    }

    std::shared_ptr<const kv::PrefixHasher> hasher_;  // owners: the scheduler too
    std::unique_ptr<FakeExecutor> executor_;
    std::unique_ptr<Scheduler> scheduler_;
    base::TimePoint now_{};
    std::map<std::string, SeqId> ids_;
    std::map<SeqId, std::string> names_;
    std::map<std::string, std::vector<base::TokenId>> tokens_;
};

TEST(SchedulerTrace, EveryScenarioIsPlannedAsWritten) {
    const char* const suites = std::getenv("PAGODA_SUITES");
    ASSERT_NE(suites, nullptr) << "PAGODA_SUITES must name the folder tests";
    const std::filesystem::path folder = std::filesystem::path(suites) / "traces";
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        if (entry.path().extension() == ".trace") paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    EXPECT_GE(paths.size(), 8U);
    for (const std::filesystem::path& path : paths) EXPECT_EQ(Trace().run(path), "");
}

}  // namespace
}  // namespace pagoda::sched
