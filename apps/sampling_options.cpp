#include "sampling_options.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include <fmt/core.h>

#include "base/nearest_name.h"

namespace pagoda::apps {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr auto kOptions = std::to_array<OptionSpec>({
    {"temperature", "X", "0 takes the likeliest token"},
    {"top-p", "X", "keep the likeliest tokens up to this probability"},
    {"top-k", "N", "keep this many of the likeliest tokens; 0 keeps all"},
    {"min-p", "X", "keep tokens with this share of the likeliest one's probability"},
    {"repetition-penalty", "X", "above 1: tokens that were there become less likely"},
    {"seed", "N", "the same seed gives the same answer"},
    {"max-tokens", "N", "end after this many tokens (default: what the context leaves)"},
    {"ignore-eos", "", "go on after the end token"},
});

base::Status set_number(std::string_view name, std::string_view value, double& target) {
    std::string field(name);
    std::ranges::replace(field, '-', '_');
    const decode::NumberRange& range = decode::number_range(field);
    const auto number = parse_number(name, value, range.low, range.high);
    if (!number) return number.error();
    if (!range.contains(*number))
        return base::invalid(fmt::format("{} must be {}, got \"{}\"", name, range.text(), value));
    target = *number;
    return {};
}

base::Status set_integer(std::string_view name, std::string_view value, std::int64_t least,
                         std::int64_t& target) {
    const auto number = parse_integer(name, value, least, kMost);
    if (!number) return number.error();
    target = *number;
    return {};
}

}  // namespace

std::span<const OptionSpec> sampling_options() {
    return kOptions;
}

base::Status set_sampling_option(std::string_view name, std::string_view value,
                                 SamplingOptions& options) {
    decode::SamplingParams& params = options.params;
    if (name == "temperature") return set_number(name, value, params.temperature);
    if (name == "top-p") return set_number(name, value, params.top_p);
    if (name == "top-k") return set_integer(name, value, decode::kMinTopK, params.top_k);
    if (name == "min-p") return set_number(name, value, params.min_p);
    if (name == "repetition-penalty") return set_number(name, value, params.repetition_penalty);
    if (name == "max-tokens") return set_integer(name, value, 1, params.max_tokens);
    if (name == "ignore-eos") {
        if (value != "true" && value != "false")
            return base::invalid(
                fmt::format("ignore-eos must be true or false, got \"{}\"", value));
        params.ignore_eos = value == "true";
        return {};
    }
    if (name == "seed") {
        const auto seed =
            parse_integer(name, value, std::numeric_limits<std::int64_t>::min(), kMost);
        if (!seed) return seed.error();
        params.seed = static_cast<std::uint64_t>(*seed);
        options.has_seed = true;
        return {};
    }
    std::vector<std::string_view> known;
    known.reserve(std::size(kOptions));
    for (const OptionSpec& option : kOptions) known.push_back(option.name);
    const std::string_view nearest = base::nearest_name(name, known);
    return base::invalid(
        fmt::format("there is no setting \"{}\"{}", name,
                    nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest)));
}

base::Result<SamplingOptions> read_sampling_options(const Arguments& arguments,
                                                    const api::SamplingDefaults& defaults) {
    SamplingOptions options;
    options.params.temperature = defaults.temperature;
    options.params.top_p = defaults.top_p;
    options.params.top_k = defaults.top_k;
    options.params.min_p = defaults.min_p;
    options.params.repetition_penalty = defaults.repetition_penalty;
    options.params.seed = decode::random_seed();
    for (const OptionSpec& option : kOptions) {
        const auto value = arguments.value(option.name);
        if (!value) continue;
        if (const auto status = set_sampling_option(option.name, *value, options); !status)
            return base::invalid("--" + status.error().message);
    }
    return options;
}

}  // namespace pagoda::apps
