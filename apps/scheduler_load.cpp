#include "scheduler_load.h"

#include <algorithm>
#include <memory>
#include <random>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace pagoda::apps {
namespace {

using base::TokenId;

constexpr std::int64_t kNumApplications = 16;
constexpr std::int64_t kVocabulary = 32'000;

std::int64_t longest(std::int64_t mean) {
    return mean + mean / 2;
}

bool is_nearly(std::int64_t count, std::int64_t most) {
    return count >= most - most / 10;
}

class Simulation {
  public:
    Simulation(const sched::SchedulerConfig& config, const SchedulerLoad& load,
               const base::Clock& clock)
        : config_(config), load_(load), clock_(clock), random_(load.seed), scheduler_(config) {}

    SchedulerFigures run() {
        double running = 0;
        while (num_submitted_ < load_.num_requests || !left_.empty()) {
            arrive();
            step();
            running += static_cast<double>(scheduler_.stats().num_running);
        }
        figures_.num_steps = std::ssize(figures_.plans);
        figures_.simulated = now_.time_since_epoch();
        figures_.mean_running =
            running / static_cast<double>(std::max<std::int64_t>(figures_.num_steps, 1));
        figures_.stats = scheduler_.stats();
        return std::move(figures_);
    }

  private:
    std::int64_t below(std::int64_t end) {
        return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end));
    }
    std::int64_t length(std::int64_t mean) {
        return std::max<std::int64_t>(mean / 2 + below(mean + 1), 1);
    }

    std::shared_ptr<const kv::PromptKeys> make_prompt(std::int64_t num_tokens) {
        const auto application = static_cast<TokenId>(below(kNumApplications));
        // Owners: the keys, which the sequence has.
        auto tokens = std::make_shared<std::vector<TokenId>>();
        tokens->reserve(static_cast<std::size_t>(num_tokens));
        for (std::int64_t i = 0; i < num_tokens; ++i)
            tokens->push_back(i < load_.shared_tokens ? application
                                                      : static_cast<TokenId>(below(kVocabulary)));
        return std::make_shared<const kv::PromptKeys>(
            config_.prefix_hasher->keys("all", std::move(tokens)));
    }

    void submit() {
        sched::SequenceSpec spec;
        spec.seq = base::SeqId(static_cast<std::uint64_t>(num_submitted_++));
        spec.client = base::ClientId(static_cast<std::uint64_t>(below(load_.num_clients)));
        spec.num_prompt_tokens = length(load_.prompt_tokens);
        // Clients allow more than comes.
        spec.max_total_tokens = spec.num_prompt_tokens + 2 * longest(load_.output_tokens);
        if (config_.prefix_hasher != nullptr) spec.prefix = make_prompt(spec.num_prompt_tokens);
        left_[spec.seq] = length(load_.output_tokens);
        const base::TimePoint began = clock_.now();
        const base::Status taken = scheduler_.submit({&spec, 1}, now_);
        figures_.submits += clock_.now() - began;
        CHECK(taken.ok(), taken.error().message);
    }

    // Whoever finds the queue full comes when there is room.
    void arrive() {
        std::exponential_distribution<double> gap(load_.rate > 0 ? load_.rate : 1);
        const auto is_there = [&] {
            return load_.rate == 0 || next_arrival_ <= now_ || left_.empty();
        };
        while (num_submitted_ < load_.num_requests && is_there() &&
               scheduler_.stats().num_waiting < load_.num_queued) {
            now_ = load_.rate == 0 ? now_ : std::max(now_, next_arrival_);
            submit();
            if (load_.rate > 0)
                next_arrival_ += base::Duration(static_cast<std::int64_t>(gap(random_) * 1e9));
        }
    }

    sched::StepResult execute(const sched::StepPlan& plan) {
        sched::StepResult result;
        result.step = plan.step;
        for (const sched::SequencePlan& part : plan.sequences) {
            sched::SequenceResult& one = result.sequences.emplace_back();
            one.seq = part.seq;
            if (!part.is_sampled) continue;
            one.tokens.push_back(static_cast<TokenId>(below(kVocabulary)));
            const auto left = left_.find(part.seq);
            if (--left->second > 0) continue;
            one.finish = sched::FinishReason::kStop;
            left_.erase(left);
        }
        now_ += load_.step_time + plan.num_tokens() * load_.token_time;
        return result;
    }

    void step() {
        const sched::SchedulerStats before = scheduler_.stats();
        const base::TimePoint began = clock_.now();
        const sched::StepPlan plan = scheduler_.plan();
        const base::Duration took = clock_.now() - began;
        figures_.plans.push_back(took);
        if (is_nearly(before.num_running, config_.max_num_seqs) &&
            is_nearly(before.num_waiting, load_.num_queued))
            figures_.plans_at_depth.push_back(took);
        const sched::StepResult result = execute(plan);
        const base::TimePoint computed = clock_.now();
        scheduler_.commit(plan, result);
        figures_.commits.push_back(clock_.now() - computed);
    }

    const sched::SchedulerConfig& config_;
    const SchedulerLoad& load_;
    const base::Clock& clock_;
    std::mt19937_64 random_;
    sched::Scheduler scheduler_;
    base::TimePoint now_{};
    base::TimePoint next_arrival_{};
    std::int64_t num_submitted_ = 0;
    std::unordered_map<base::SeqId, std::int64_t> left_;  // outputs of those that have not ended
    SchedulerFigures figures_;
};

}  // namespace

std::int64_t longest_request(const SchedulerLoad& load) {
    return longest(load.prompt_tokens) + 2 * longest(load.output_tokens) + 1;
}

SchedulerFigures run_scheduler_load(const sched::SchedulerConfig& config, const SchedulerLoad& load,
                                    const base::Clock& clock) {
    return Simulation(config, load, clock).run();
}

}  // namespace pagoda::apps
