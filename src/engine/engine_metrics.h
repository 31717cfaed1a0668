#pragma once
// The engine's metrics, under vLLM's names and meanings (what is ours alone is pagoda:...). Made
// once, at zero; updated at commit points by the threads named below. All updates are lock-free.

#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/request.h"
#include "sched/scheduler.h"

namespace pagoda::engine {

// Moments of one choice, for the histograms and for TokenEvent::timings.
struct ChoiceTimes {
    base::TimePoint submitted;
    base::TimePoint first_step;  // its first tokens were computed in a step that began here
    base::TimePoint first_token;
    base::TimePoint last_token;
};
[[nodiscard]] Timings timings_of(const ChoiceTimes& times);

class EngineMetrics {
  public:
    EngineMetrics(base::MetricsRegistry& registry, const std::string& model_name);

    // Engine thread, after each step.
    void on_step(const sched::SchedulerStats& stats, std::int64_t num_tokens,
                 base::Duration duration);
    // Output thread.
    void on_first_token(const ChoiceTimes& times);
    void on_token(base::Duration since_last);
    void on_generated(std::int64_t num_tokens) {
        generation_tokens_->add(static_cast<double>(num_tokens));
    }
    void on_prompt(std::int64_t num_tokens) {
        prompt_tokens_->add(static_cast<double>(num_tokens));
    }
    void on_finish(FinishReason reason, const ChoiceTimes& times, std::int64_t num_tokens);

  private:
    base::Gauge* running_;
    base::Gauge* waiting_;
    base::Gauge* kv_usage_;
    base::Gauge* kv_blocks_used_;
    base::Counter* preemptions_;
    base::Counter* prompt_tokens_;
    base::Counter* generation_tokens_;
    base::Counter* finished_[4];  // by FinishReason
    base::Histogram* ttft_;
    base::Histogram* itl_;
    base::Histogram* tpot_;
    base::Histogram* e2e_;
    base::Histogram* queue_time_;
    base::Histogram* prefill_time_;
    base::Histogram* decode_time_;
    base::Histogram* iteration_tokens_;
    base::Histogram* step_time_;
    std::uint64_t preemptions_seen_ = 0;  // engine thread
};

}  // namespace pagoda::engine
