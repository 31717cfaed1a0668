#include "bench_options.h"

#include <algorithm>

#include <fmt/core.h>

namespace pagoda::apps {

base::Result<std::vector<std::int64_t>> integer_list(const Arguments& arguments,
                                                     std::string_view option,
                                                     std::string_view fallback, std::int64_t least,
                                                     std::int64_t most) {
    std::vector<std::int64_t> values;
    for (const std::string& part :
         split_list(arguments.value(option).value_or(std::string(fallback)))) {
        const auto value = parse_integer(fmt::format("--{}", option), part, least, most);
        if (!value) return value.error();
        values.push_back(*value);
    }
    return values;
}

std::int64_t Numbers::integer(std::string_view option, std::int64_t fallback, std::int64_t least,
                              std::int64_t most) {
    const auto value = arguments_.integer(option, fallback, least, most);
    if (!value && status_.ok()) status_ = value.error();
    return value ? *value : fallback;
}

double Numbers::number(std::string_view option, double fallback, double least, double most) {
    const auto value = arguments_.number(option, fallback, least, most);
    if (!value && status_.ok()) status_ = value.error();
    return value ? *value : fallback;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace pagoda::apps
