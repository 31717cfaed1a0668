#pragma once
// What a load's samples come to. Pure. Times are milliseconds; what is named as in `vllm bench
// serve` means the same.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "loadgen/load.h"

namespace pagoda::loadgen {

// Of no values all are 0. Percentiles by the nearest rank.
struct Spread {
    double mean = 0;
    double median = 0;
    double p90 = 0;
    double p99 = 0;
    double most = 0;
};
[[nodiscard]] Spread spread_of(std::vector<double> values);

// What a request must keep to count as goodput; nothing: it counts whatever it takes.
struct Targets {
    std::optional<double> ttft_ms;
    std::optional<double> tpot_ms;
};

struct Report {
    std::int64_t num_completed = 0;
    std::int64_t num_failed = 0;
    std::int64_t num_good = 0;  // completed, and within the targets
    double duration_s = 0;
    std::int64_t num_prompt_tokens = 0;  // of those completed, as all below
    std::int64_t num_cached_tokens = 0;
    std::int64_t num_output_tokens = 0;
    Spread ttft;  // time to first token, from the arrival
    Spread tpot;  // time per output token behind the first, a value for each request
    Spread itl;   // between pieces of text, a value for each gap
    Spread e2el;  // end to end, from the arrival
    std::map<std::string, std::int64_t> errors;

    [[nodiscard]] double per_second(std::int64_t count) const {
        return duration_s > 0 ? static_cast<double>(count) / duration_s : 0;
    }
};

[[nodiscard]] Report report_of(const LoadResult& result, const Targets& targets);

}  // namespace pagoda::loadgen
