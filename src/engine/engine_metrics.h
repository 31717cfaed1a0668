#pragma once
// The engine's metrics, under vLLM's names and meanings (what is ours alone is pagoda:...). Made
// once, at zero; updated at commit points by the threads named below. All updates are lock-free.

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/request.h"
#include "sched/scheduler.h"

namespace pagoda::engine {

// Moments of one sequence, for the histograms and for TokenEvent::timings; empty until they come.
struct SequenceTimes {
    base::TimePoint submitted;
    // Its first tokens were computed in a step that began here.
    std::optional<base::TimePoint> first_step;
    std::optional<base::TimePoint> first_token, last_token;  // both or none
};
[[nodiscard]] Timings timings_of(const SequenceTimes& times);

class EngineMetrics {
  public:
    EngineMetrics(base::MetricsRegistry& registry, const std::string& model_name,
                  const sched::SchedulerConfig& config);

    // Engine thread, after each step.
    void on_step(const sched::SchedulerStats& stats, std::int64_t num_tokens,
                 base::Duration duration);
    // Engine thread, after each step and whenever what is cached changes outside of one.
    void on_cache(const sched::SchedulerStats& stats);
    // Output thread. REQUIRES: the times that each needs are there.
    void on_first_token(const SequenceTimes& times);
    void on_token(base::Duration since_last);
    void on_generated(std::int64_t num_tokens) {
        generation_tokens_->add(static_cast<double>(num_tokens));
    }
    // is_looked_up: in the prefix cache. Once for all choices of a prompt.
    void on_prompt(const Usage& usage, bool is_looked_up);
    void on_finish(FinishReason reason, const SequenceTimes& times, std::int64_t num_tokens);

  private:
    void register_gauges(base::MetricsRegistry& registry, const base::Labels& model);
    void register_counters(base::MetricsRegistry& registry, const base::Labels& model);
    void register_histograms(base::MetricsRegistry& registry, const base::Labels& model);

    base::Gauge* running_;
    base::Gauge* waiting_;
    base::Gauge* preempted_;
    base::Gauge* kv_usage_;
    base::Gauge* kv_blocks_used_;
    base::Gauge* kv_blocks_cached_;
    base::Counter* preemptions_;
    base::Counter* prompt_tokens_;
    base::Counter* generation_tokens_;
    base::Counter* prefix_queries_;
    base::Counter* prefix_hits_;
    base::Counter* evicted_blocks_;
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
    std::uint64_t preemptions_seen_ = 0;  // engine thread, as the next
    std::uint64_t evicted_blocks_seen_ = 0;
};

}  // namespace pagoda::engine
