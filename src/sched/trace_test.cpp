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
        std::string argument;
        if (!(words >> argument)) return verb + " needs an argument";
        if (verb == "cancel") return scheduler_->cancel(ids_.at(argument)), "";
        if (verb == "wait") return now_ += std::chrono::milliseconds(std::stoll(argument)), "";
        if (verb == "used") return expect_used(std::stoll(argument));
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
        const base::Status status = scheduler_->submit({&spec, 1}, now_);
        if (fields.contains("refused")) return status.ok() ? name + " was not refused" : "";
        if (!status.ok()) return status.error().message;
        executor_->add(spec, outputs);
        ids_[name] = spec.seq;
        names_[spec.seq] = name;
        return "";
    }

    StepPlan step() {
        const StepPlan plan = scheduler_->plan();
        scheduler_->commit(plan, executor_->run(plan));
        return plan;
    }

    std::string expect_step(std::istringstream& words) {
        std::string expected;
        for (std::string word; words >> word;) expected += (expected.empty() ? "" : " ") + word;
        const std::string planned = text_of(step());
        return planned == expected ? "" : "expected: " + expected + "\n  planned: " + planned;
    }

    std::string expect_used(std::int64_t expected) {
        const std::int64_t used = scheduler_->stats().num_blocks_used;
        return used == expected ? "" : std::to_string(used) + " blocks are in use";
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
        return text;
    }

    std::unique_ptr<FakeExecutor> executor_;
    std::unique_ptr<Scheduler> scheduler_;
    base::TimePoint now_{};
    std::map<std::string, SeqId> ids_;
    std::map<SeqId, std::string> names_;
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
