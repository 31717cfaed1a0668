#include "sampling_defaults.h"

#include <cmath>
#include <limits>

#include <fmt/core.h>

namespace pagoda::apps {
namespace {

struct Range {
    double least = 0, most = 0;
};

base::Result<double> read(const formats::Checkpoint& checkpoint, std::string_view name,
                          double fallback, Range range) {
    const std::string key = fmt::format("general.sampling.{}", name);
    const formats::MetaValue* value = checkpoint.find_meta(key);
    if (value == nullptr) return fallback;
    double number = std::numeric_limits<double>::quiet_NaN();
    if (const auto* real = std::get_if<double>(value)) number = *real;
    if (const auto* whole = std::get_if<std::int64_t>(value)) number = static_cast<double>(*whole);
    if (!(number >= range.least && number <= range.most))
        return base::invalid(fmt::format("{} must be a number from {} to {}, got {}", key,
                                         range.least, range.most, number),
                             key);
    return number;
}

}  // namespace

base::Result<api::SamplingDefaults> read_sampling_defaults(const formats::Checkpoint& checkpoint) {
    constexpr double kMostTopK = 1 << 30;
    api::SamplingDefaults defaults;
    const auto temperature = read(checkpoint, "temp", defaults.temperature, {0, 100});
    const auto top_p = read(checkpoint, "top_p", defaults.top_p, {1e-6, 1});
    const auto top_k =
        read(checkpoint, "top_k", static_cast<double>(defaults.top_k), {-1, kMostTopK});
    const auto min_p = read(checkpoint, "min_p", defaults.min_p, {0, 1});
    const auto penalty =
        read(checkpoint, "penalty_repeat", defaults.repetition_penalty, {1e-3, 1e4});
    for (const auto* value : {&temperature, &top_p, &top_k, &min_p, &penalty}) {
        if (!*value) return value->error();
    }
    return api::SamplingDefaults{.temperature = *temperature,
                                 .top_p = *top_p,
                                 .top_k = std::llround(*top_k),
                                 .min_p = *min_p,
                                 .repetition_penalty = *penalty};
}

}  // namespace pagoda::apps
