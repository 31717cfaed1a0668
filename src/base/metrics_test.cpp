#include "base/metrics.h"

#include <cmath>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

namespace pagoda::base {
namespace {

TEST(Metrics, AreThereAtZeroFromRegistrationOn) {
    MetricsRegistry registry;
    registry.counter("requests_total", "All requests.");
    registry.gauge("requests_running", "Requests in a batch.");
    EXPECT_EQ(registry.render(),
              "# HELP requests_total All requests.\n"
              "# TYPE requests_total counter\n"
              "requests_total 0\n"
              "# HELP requests_running Requests in a batch.\n"
              "# TYPE requests_running gauge\n"
              "requests_running 0\n");
}

TEST(Metrics, AFamilyHasOneHelpAndOneType) {
    MetricsRegistry registry;
    registry.counter("done_total", "Finished.", {{"reason", "stop"}}).add();
    registry.gauge("between", "Between.");
    registry.counter("done_total", "Finished.", {{"reason", "length"}}).add(2);
    EXPECT_EQ(registry.render(),
              "# HELP done_total Finished.\n"
              "# TYPE done_total counter\n"
              "done_total{reason=\"stop\"} 1\n"
              "done_total{reason=\"length\"} 2\n"
              "# HELP between Between.\n"
              "# TYPE between gauge\n"
              "between 0\n");
}

TEST(Metrics, TheSameNameAndLabelsAreTheSameMetric) {
    MetricsRegistry registry;
    Counter& first = registry.counter("x_total", "X.", {{"a", "1"}, {"b", "2"}});
    EXPECT_EQ(&first, &registry.counter("x_total", "X.", {{"b", "2"}, {"a", "1"}}));
    EXPECT_NE(&first, &registry.counter("x_total", "X.", {{"a", "1"}, {"b", "3"}}));
    EXPECT_NE(&first, &registry.counter("x_total", "X."));
}

TEST(Metrics, LabelsAndHelpAreEscaped) {
    MetricsRegistry registry;
    registry.gauge("g", "A \"help\"\nwith \\ in it", {{"path", "a\"b\\c\nd\xff"}});
    EXPECT_EQ(registry.render(),
              "# HELP g A \"help\"\\nwith \\\\ in it\n"
              "# TYPE g gauge\n"
              "g{path=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\"} 0\n");
}

TEST(Metrics, AHistogramHasCumulativeBucketsSumAndCount) {
    MetricsRegistry registry;
    Histogram& histogram = registry.histogram("t_seconds", "T.", {0.005, 1, 2.5}, {{"m", "x"}});
    for (const double value : {0.001, 0.005, 0.5, 2.5, 100.0}) histogram.observe(value);
    EXPECT_EQ(histogram.count(), 5U);
    EXPECT_EQ(histogram.bucket_counts(), (std::vector<std::uint64_t>{2, 3, 4, 5}));
    EXPECT_EQ(registry.render(),
              "# HELP t_seconds T.\n"
              "# TYPE t_seconds histogram\n"
              "t_seconds_bucket{m=\"x\",le=\"0.005\"} 2\n"
              "t_seconds_bucket{m=\"x\",le=\"1\"} 3\n"
              "t_seconds_bucket{m=\"x\",le=\"2.5\"} 4\n"
              "t_seconds_bucket{m=\"x\",le=\"+Inf\"} 5\n"
              "t_seconds_sum{m=\"x\"} 103.006\n"
              "t_seconds_count{m=\"x\"} 5\n");
}

TEST(Metrics, NanIsCountedAndLeavesTheSumAlone) {
    Histogram histogram({1});
    histogram.observe(std::nan(""));
    histogram.observe(0.5);
    EXPECT_EQ(histogram.count(), 2U);
    EXPECT_EQ(histogram.sum(), 0.5);
}

TEST(Metrics, WholeNumbersHaveNoExponent) {
    MetricsRegistry registry;
    Gauge& gauge = registry.gauge("g", "G.");
    const auto shown = [&](double value) {
        gauge.set(value);
        const std::string page = registry.render();
        const std::size_t start = page.rfind("\ng ") + 3;
        return page.substr(start, page.size() - start - 1);
    };
    EXPECT_EQ(shown(1e15), "1000000000000000");
    EXPECT_EQ(shown(9007199254740992.0), "9007199254740992");
    EXPECT_EQ(shown(-123456789.0), "-123456789");
    EXPECT_EQ(shown(0.25), "0.25");
    EXPECT_EQ(shown(1e300), "1e+300");
    EXPECT_EQ(shown(std::numeric_limits<double>::infinity()), "+Inf");
    EXPECT_EQ(shown(-std::numeric_limits<double>::infinity()), "-Inf");
    EXPECT_EQ(shown(std::nan("")), "NaN");
}

TEST(Metrics, UpdatesFromManyThreadsAddUp) {
    MetricsRegistry registry;
    Counter& counter = registry.counter("c_total", "C.");
    Histogram& histogram = registry.histogram("h", "H.", {10});
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&] {
            for (int round = 0; round < 2'000; ++round) {
                counter.add();
                histogram.observe(round % 20);
                if (round % 500 == 0) (void)registry.render();
                registry.gauge("g", "G.").add(1);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(counter.value(), 8'000);
    EXPECT_EQ(histogram.bucket_counts(), (std::vector<std::uint64_t>{4'400, 8'000}));
    EXPECT_EQ(registry.gauge("g", "G.").value(), 8'000);
}

TEST(MetricsDeathTest, MisuseIsABrokenInvariant) {
    MetricsRegistry registry;
    registry.counter("c_total", "C.");
    registry.histogram("h", "H.", {1, 2});
    EXPECT_DEATH(registry.gauge("c_total", "C."), "two kinds: c_total");
    EXPECT_DEATH(registry.histogram("h", "H.", {1, 3}, {{"a", "b"}}), "two sets of bounds: h");
    EXPECT_DEATH(registry.counter("1c", "C."), "a metric name must match");
    EXPECT_DEATH(registry.counter("", "C."), "a metric name must match");
    EXPECT_DEATH(registry.counter("c_total", "C.", {{"a-b", "1"}}), "a label name must match");
    EXPECT_DEATH(registry.counter("c_total", "C.", {{"a", "1"}, {"a", "2"}}), "once");
    EXPECT_DEATH(registry.histogram("h", "H.", {1, 2}, {{"le", "1"}}), "buckets' own");
    EXPECT_DEATH(Histogram({2, 1}), "ascend");
    EXPECT_DEATH(registry.counter("c_total", "C.").add(-1), "never goes down");
}

}  // namespace
}  // namespace pagoda::base
