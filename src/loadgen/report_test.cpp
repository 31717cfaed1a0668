#include "loadgen/report.h"

#include <gtest/gtest.h>

namespace pagoda::loadgen {
namespace {

using std::chrono::milliseconds;

base::TimePoint at(int ms) {
    return base::TimePoint(milliseconds(ms));
}

Sample answer(int arrived, int first, int gap, int num_tokens) {
    Sample sample{.arrived_at = at(arrived),
                  .sent_at = at(arrived + 1),
                  .first_token_at = at(first),
                  .ended_at = at(first + gap * (num_tokens - 1)),
                  .num_prompt_tokens = 10,
                  .num_cached_tokens = 4,
                  .num_output_tokens = num_tokens,
                  .status = 200};
    sample.gaps.assign(static_cast<std::size_t>(num_tokens) - 1, milliseconds(gap));
    return sample;
}

TEST(Report, PercentilesAreTheNearestRank) {
    std::vector<double> values;
    for (int i = 100; i >= 1; --i) values.push_back(i);
    const Spread spread = spread_of(values);
    EXPECT_EQ(spread.median, 50);
    EXPECT_EQ(spread.p90, 90);
    EXPECT_EQ(spread.p99, 99);
    EXPECT_EQ(spread.most, 100);
    EXPECT_EQ(spread.mean, 50.5);
    EXPECT_EQ(spread_of({7}).p99, 7);
    EXPECT_EQ(spread_of({}).mean, 0);
}

TEST(Report, CountsTimesFromArrivalsAndTokensOfWholeAnswers) {
    LoadResult result{.took = milliseconds(2000)};
    result.samples = {answer(0, 100, 10, 11), answer(50, 350, 20, 6)};
    Sample failed{.status = 503, .error = "status 503: full"};
    result.samples.push_back(failed);
    const Report report = report_of(result, {});
    EXPECT_EQ(report.num_completed, 2);
    EXPECT_EQ(report.num_failed, 1);
    EXPECT_EQ(report.errors.at("status 503: full"), 1);
    EXPECT_EQ(report.num_prompt_tokens, 20);
    EXPECT_EQ(report.num_cached_tokens, 8);
    EXPECT_EQ(report.num_output_tokens, 17);
    EXPECT_EQ(report.ttft.mean, 200);
    EXPECT_EQ(report.tpot.most, 20);
    EXPECT_EQ(report.itl.mean, (10 * 10 + 5 * 20) / 15.0);
    EXPECT_EQ(report.e2el.most, 400);
    EXPECT_EQ(report.per_second(report.num_output_tokens), 8.5);
}

TEST(Report, GoodputIsWhatKeepsBothTargets) {
    LoadResult result{.took = milliseconds(1000)};
    result.samples = {answer(0, 100, 10, 11), answer(0, 300, 10, 11), answer(0, 100, 50, 11),
                      answer(0, 100, 10, 1)};
    EXPECT_EQ(report_of(result, {}).num_good, 4);
    EXPECT_EQ(report_of(result, {.ttft_ms = 200}).num_good, 3);
    EXPECT_EQ(report_of(result, {.tpot_ms = 20}).num_good, 3);
    EXPECT_EQ(report_of(result, {.ttft_ms = 200, .tpot_ms = 20}).num_good, 2);
}

}  // namespace
}  // namespace pagoda::loadgen
