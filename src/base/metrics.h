#pragma once
// Metric primitives and their Prometheus text (exposition format 0.0.4). The registry owns its
// metrics, which live as long as it does; updating one is lock-free and allowed from any thread.
// Emitted by their owner at commit points. Every metric exists, at zero, from registration on.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace pagoda::base {

class Counter {
  public:
    // by >= 0: a counter never goes down.
    void add(double by = 1) {
        CHECK(by >= 0, "a counter never goes down");
        value_.fetch_add(by, std::memory_order_relaxed);
    }
    [[nodiscard]] double value() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<double> value_{0};
};

class Gauge {
  public:
    void set(double value) { value_.store(value, std::memory_order_relaxed); }
    void add(double by) { value_.fetch_add(by, std::memory_order_relaxed); }
    [[nodiscard]] double value() const { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<double> value_{0};
};

class Histogram {
  public:
    // bounds: ascending upper bounds; a last bucket for infinity is implied.
    explicit Histogram(std::vector<double> bounds);
    // NaN is counted in the last bucket and left out of the sum, which it would destroy.
    void observe(double value);
    [[nodiscard]] std::span<const double> bounds() const { return bounds_; }
    // A consistent enough copy: cumulative counts never exceed count().
    [[nodiscard]] std::vector<std::uint64_t> bucket_counts() const;
    [[nodiscard]] std::uint64_t count() const;
    [[nodiscard]] double sum() const { return sum_.load(std::memory_order_relaxed); }

  private:
    const std::vector<double> bounds_;
    std::unique_ptr<std::atomic<std::uint64_t>[]> counts_;  // [bounds + 1]
    std::atomic<double> sum_{0};
};

using Labels = std::vector<std::pair<std::string, std::string>>;

class MetricsRegistry {
  public:
    MetricsRegistry();
    ~MetricsRegistry();
    MetricsRegistry(const MetricsRegistry&) = delete;
    MetricsRegistry& operator=(const MetricsRegistry&) = delete;

    // The same name and labels give the same object. Names match [a-zA-Z_:][a-zA-Z0-9_:]*; a name
    // registered with another kind or other bounds is a broken invariant. The order of the labels
    // means nothing. Labels that the outside chooses must be bounded by the caller.
    Counter& counter(std::string_view name, std::string_view help, const Labels& labels = {});
    Gauge& gauge(std::string_view name, std::string_view help, const Labels& labels = {});
    Histogram& histogram(std::string_view name, std::string_view help, std::vector<double> bounds,
                         const Labels& labels = {});
    // The whole page, families in order of registration.
    [[nodiscard]] std::string render() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda::base
