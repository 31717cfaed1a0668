#include "sampling_defaults.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include <fmt/core.h>

#include "decode/sampling_params.h"

namespace pagoda::apps {
namespace {

constexpr std::string_view kPrefix = "general.sampling.";
constexpr std::array<std::string_view, 5> kApplied = {"temp", "top_p", "top_k", "min_p",
                                                      "penalty_repeat"};

// The number of that key; NaN where it is of another type, which is in no range.
std::optional<double> number_of(const formats::Checkpoint& checkpoint, const std::string& key) {
    const formats::MetaValue* value = checkpoint.find_meta(key);
    if (value == nullptr) return std::nullopt;
    if (const auto* real = std::get_if<double>(value)) return *real;
    if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
    return std::numeric_limits<double>::quiet_NaN();
}

// field: of SamplingParams, whose range it has.
base::Result<double> read_number(const formats::Checkpoint& checkpoint, std::string_view name,
                                 std::string_view field, double fallback) {
    const std::string key = fmt::format("{}{}", kPrefix, name);
    const double number = number_of(checkpoint, key).value_or(fallback);
    const decode::NumberRange& range = decode::number_range(field);
    if (!range.contains(number))
        return base::invalid(
            fmt::format("{} must be a number {}, got {}", key, range.text(), number), key);
    return number;
}

base::Result<std::int64_t> read_top_k(const formats::Checkpoint& checkpoint,
                                      std::int64_t fallback) {
    // More tokens than any vocabulary has, and exact in a float.
    constexpr std::int64_t kMost = 1 << 30;
    const std::string key = fmt::format("{}top_k", kPrefix);
    const double number = number_of(checkpoint, key).value_or(static_cast<double>(fallback));
    const bool is_whole = number == std::floor(number);  // NaN never is
    if (!is_whole || number < decode::kMinTopK || number > kMost)
        return base::invalid(fmt::format("{} must be a whole number from {} to {}, got {}", key,
                                         decode::kMinTopK, kMost, number),
                             key);
    return static_cast<std::int64_t>(number);
}

std::vector<std::string> keys_not_applied(const formats::Checkpoint& checkpoint) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : checkpoint.metadata) {
        const std::string_view name = key;
        if (name.starts_with(kPrefix) &&
            std::ranges::find(kApplied, name.substr(kPrefix.size())) == kApplied.end())
            keys.push_back(key);
    }
    return keys;
}

}  // namespace

base::Result<ModelSampling> read_model_sampling(const formats::Checkpoint& checkpoint) {
    const api::SamplingDefaults plain;
    const auto temperature = read_number(checkpoint, "temp", "temperature", plain.temperature);
    const auto top_p = read_number(checkpoint, "top_p", "top_p", plain.top_p);
    const auto min_p = read_number(checkpoint, "min_p", "min_p", plain.min_p);
    const auto penalty =
        read_number(checkpoint, "penalty_repeat", "repetition_penalty", plain.repetition_penalty);
    for (const auto* value : {&temperature, &top_p, &min_p, &penalty}) {
        if (!*value) return value->error();
    }
    const auto top_k = read_top_k(checkpoint, plain.top_k);
    if (!top_k) return top_k.error();
    return ModelSampling{.defaults = {.temperature = *temperature,
                                      .top_p = *top_p,
                                      .top_k = *top_k,
                                      .min_p = *min_p,
                                      .repetition_penalty = *penalty},
                         .not_applied = keys_not_applied(checkpoint)};
}

}  // namespace pagoda::apps
