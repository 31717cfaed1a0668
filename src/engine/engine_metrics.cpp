#include "engine/engine_metrics.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kv/index/block_pool.h"

namespace pagoda::engine {
namespace {

double seconds(base::Duration duration) {
    return std::chrono::duration<double>(duration).count();
}

double milliseconds(base::Duration duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
}

const std::vector<double> kTokenSeconds = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
                                           0.4,  0.5,   0.75, 1.0,   2.5, 5.0,  7.5, 10.0};
const std::vector<double> kFirstTokenSeconds = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08,
                                                0.1,   0.25,  0.5,  0.75, 1.0,  2.5,  5.0,
                                                7.5,   10.0,  20.0, 40.0, 80.0, 160.0};
const std::vector<double> kRequestSeconds = {0.3,  0.5,   0.8,   1.0,   1.5,   2.0,    2.5,
                                             5.0,  10.0,  15.0,  20.0,  30.0,  40.0,   50.0,
                                             60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0};
const std::vector<double> kStepTokens = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};

}  // namespace

Timings timings_of(const SequenceTimes& times) {
    const auto span = [](base::TimePoint from, base::TimePoint to) {
        return milliseconds(std::max(base::Duration::zero(), to - from));
    };
    if (!times.first_step) return {};
    Timings timings{.queue_ms = span(times.submitted, *times.first_step)};
    if (!times.first_token) return timings;
    timings.prefill_ms = span(*times.first_step, *times.first_token);
    timings.decode_ms = span(*times.first_token, *times.last_token);
    return timings;
}

EngineMetrics::EngineMetrics(base::MetricsRegistry& registry, const std::string& model_name,
                             const sched::SchedulerConfig& config) {
    const base::Labels model = {{"model_name", model_name}};
    register_gauges(registry, model);
    register_counters(registry, model);
    register_histograms(registry, model);
    // What does not change, in labels, as routers read it.
    std::int64_t num_blocks = 0;
    for (const sched::KvGroupSpec& group : config.groups)
        num_blocks = std::max(num_blocks, group.num_blocks);
    base::Labels cache = model;
    cache.emplace_back("block_size", std::to_string(kv::kBlockTokens));
    cache.emplace_back("num_gpu_blocks", std::to_string(num_blocks));
    cache.emplace_back("num_cpu_blocks", "0");
    cache.emplace_back("enable_prefix_caching", config.prefix_hasher ? "True" : "False");
    registry.gauge("vllm:cache_config_info", "The KV cache, in labels.", cache).set(1);
    base::Labels adapters = model;
    adapters.emplace_back("max_lora", "0");
    adapters.emplace_back("running_lora_adapters", "");
    adapters.emplace_back("waiting_lora_adapters", "");
    registry.gauge("vllm:lora_requests_info", "Adapters in use, in labels; there are none.",
                   adapters);
}

void EngineMetrics::register_gauges(base::MetricsRegistry& registry, const base::Labels& model) {
    running_ =
        &registry.gauge("vllm:num_requests_running", "Sequences that hold KV blocks.", model);
    waiting_ = &registry.gauge(
        "vllm:num_requests_waiting",
        "Sequences that hold no KV blocks: before their first step, or preempted.", model);
    preempted_ = &registry.gauge("pagoda:num_requests_preempted",
                                 "Of those that wait, the ones that have run before.", model);
    kv_usage_ =
        &registry.gauge("vllm:kv_cache_usage_perc", "Share of KV blocks in use, 0 to 1.", model);
    kv_blocks_used_ =
        &registry.gauge("pagoda:kv_blocks_used", "KV blocks held by sequences.", model);
    kv_blocks_cached_ = &registry.gauge(
        "pagoda:kv_blocks_cached",
        "KV blocks held by nobody that the prefix cache keeps until others need them.", model);
}

void EngineMetrics::register_counters(base::MetricsRegistry& registry, const base::Labels& model) {
    preemptions_ =
        &registry.counter("vllm:num_preemptions_total",
                          "Sequences that gave their blocks back to be computed again.", model);
    prompt_tokens_ = &registry.counter(
        "vllm:prompt_tokens_total",
        "Prompt tokens of requests whose prefill is done, once for all choices.", model);
    generation_tokens_ =
        &registry.counter("vllm:generation_tokens_total", "Tokens generated and delivered.", model);
    prefix_queries_ = &registry.counter(
        "vllm:prefix_cache_queries_total",
        "Prompt tokens looked up in the prefix cache, once for all choices.", model);
    prefix_hits_ =
        &registry.counter("vllm:prefix_cache_hits_total", "Of them, those that were found.", model);
    evicted_blocks_ = &registry.counter("pagoda:prefix_cache_evicted_blocks_total",
                                        "Cached KV blocks that made room for others.", model);
    registry.counter("vllm:spec_decode_num_accepted_tokens_total",
                     "Draft tokens that the model agreed with.", model);
    for (const FinishReason reason : {FinishReason::kStop, FinishReason::kLength,
                                      FinishReason::kAborted, FinishReason::kError}) {
        base::Labels labels = model;
        labels.emplace_back("finished_reason", finish_name(reason));
        finished_[static_cast<std::size_t>(reason)] = &registry.counter(
            "vllm:request_success_total", "Finished sequences by reason.", labels);
    }
}

void EngineMetrics::register_histograms(base::MetricsRegistry& registry,
                                        const base::Labels& model) {
    ttft_ = &registry.histogram("vllm:time_to_first_token_seconds",
                                "From arrival to the first token.", kFirstTokenSeconds, model);
    itl_ = &registry.histogram("vllm:inter_token_latency_seconds",
                               "Between two tokens of a sequence.", kTokenSeconds, model);
    tpot_ = &registry.histogram("vllm:request_time_per_output_token_seconds",
                                "Mean time per token after the first, per sequence.", kTokenSeconds,
                                model);
    e2e_ = &registry.histogram("vllm:e2e_request_latency_seconds",
                               "From arrival to the last token.", kRequestSeconds, model);
    queue_time_ = &registry.histogram("vllm:request_queue_time_seconds",
                                      "From arrival to the first step.", kRequestSeconds, model);
    prefill_time_ =
        &registry.histogram("vllm:request_prefill_time_seconds",
                            "From the first step to the first token.", kRequestSeconds, model);
    decode_time_ = &registry.histogram("vllm:request_decode_time_seconds",
                                       "From the first token to the last.", kRequestSeconds, model);
    iteration_tokens_ = &registry.histogram("vllm:iteration_tokens_total",
                                            "Tokens computed in a step.", kStepTokens, model);
    step_time_ = &registry.histogram("pagoda:step_time_seconds", "Duration of a step.",
                                     kTokenSeconds, model);
}

void EngineMetrics::on_step(const sched::SchedulerStats& stats, std::int64_t num_tokens,
                            base::Duration duration) {
    running_->set(static_cast<double>(stats.num_running));
    waiting_->set(static_cast<double>(stats.num_waiting + stats.num_preempted));
    preempted_->set(static_cast<double>(stats.num_preempted));
    kv_usage_->set(stats.kv_usage);
    kv_blocks_used_->set(static_cast<double>(stats.num_blocks_used));
    on_cache(stats);
    preemptions_->add(static_cast<double>(stats.num_preemptions - preemptions_seen_));
    preemptions_seen_ = stats.num_preemptions;
    if (num_tokens == 0) return;
    iteration_tokens_->observe(static_cast<double>(num_tokens));
    step_time_->observe(seconds(duration));
}

void EngineMetrics::on_cache(const sched::SchedulerStats& stats) {
    kv_blocks_cached_->set(static_cast<double>(stats.num_blocks_cached));
    evicted_blocks_->add(static_cast<double>(stats.num_evicted_blocks - evicted_blocks_seen_));
    evicted_blocks_seen_ = stats.num_evicted_blocks;
}

void EngineMetrics::on_prompt(const Usage& usage, bool is_looked_up) {
    prompt_tokens_->add(static_cast<double>(usage.prompt_tokens));
    if (!is_looked_up) return;
    prefix_queries_->add(static_cast<double>(usage.prompt_tokens));
    prefix_hits_->add(static_cast<double>(usage.cached_tokens));
}

void EngineMetrics::on_first_token(const SequenceTimes& times) {
    ttft_->observe(seconds(*times.first_token - times.submitted));
    queue_time_->observe(seconds(*times.first_step - times.submitted));
    prefill_time_->observe(seconds(*times.first_token - *times.first_step));
}

void EngineMetrics::on_token(base::Duration since_last) {
    itl_->observe(seconds(since_last));
}

void EngineMetrics::on_finish(FinishReason reason, const SequenceTimes& times,
                              std::int64_t num_tokens) {
    finished_[static_cast<std::size_t>(reason)]->add();
    if (reason == FinishReason::kAborted || reason == FinishReason::kError) return;
    e2e_->observe(seconds(*times.last_token - times.submitted));
    decode_time_->observe(seconds(*times.last_token - *times.first_token));
    if (num_tokens > 1)
        tpot_->observe(seconds(*times.last_token - *times.first_token) /
                       static_cast<double>(num_tokens - 1));
}

}  // namespace pagoda::engine
