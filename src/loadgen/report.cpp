#include "loadgen/report.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace pagoda::loadgen {
namespace {

double milliseconds(base::Duration time) {
    return std::chrono::duration<double, std::milli>(time).count();
}

bool is_within(std::optional<double> value, std::optional<double> most) {
    return !most || !value || *value <= *most;
}

}  // namespace

Spread spread_of(std::vector<double> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    const auto at = [&](double share) {
        const double rank = std::ceil(share * static_cast<double>(values.size()));
        return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
    };
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    constexpr double kMedian = 0.5;
    constexpr double kP90 = 0.9;
    constexpr double kP99 = 0.99;
    return {.mean = sum / static_cast<double>(values.size()),
            .median = at(kMedian),
            .p90 = at(kP90),
            .p99 = at(kP99),
            .most = values.back()};
}

Report report_of(const LoadResult& result, const Targets& targets) {
    Report report{.duration_s = std::chrono::duration<double>(result.took).count()};
    std::vector<double> ttft;
    std::vector<double> tpot;
    std::vector<double> itl;
    std::vector<double> e2el;
    for (const Sample& sample : result.samples) {
        if (!sample.ok()) {
            ++report.num_failed;
            ++report.errors[sample.error];
            continue;
        }
        ++report.num_completed;
        report.num_prompt_tokens += sample.num_prompt_tokens;
        report.num_cached_tokens += sample.num_cached_tokens;
        report.num_output_tokens += sample.num_output_tokens;
        ttft.push_back(milliseconds(sample.time_to_first_token()));
        e2el.push_back(milliseconds(sample.ended_at - sample.arrived_at));
        std::optional<double> per_token;
        if (const auto time = sample.time_per_output_token(); time) {
            per_token = milliseconds(*time);
            tpot.push_back(*per_token);
        }
        for (const base::Duration gap : sample.gaps) itl.push_back(milliseconds(gap));
        if (is_within(ttft.back(), targets.ttft_ms) && is_within(per_token, targets.tpot_ms))
            ++report.num_good;
    }
    report.ttft = spread_of(std::move(ttft));
    report.tpot = spread_of(std::move(tpot));
    report.itl = spread_of(std::move(itl));
    report.e2el = spread_of(std::move(e2el));
    return report;
}

}  // namespace pagoda::loadgen
