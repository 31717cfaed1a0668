#include "serve/http/descriptor_limit.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <sys/resource.h>

namespace pagoda::http {
namespace {

std::size_t num_open_descriptors() {
    std::error_code error;
    std::filesystem::directory_iterator entry("/proc/self/fd", error);
    std::size_t count = 0;
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
        ++count;
    return count;
}

}  // namespace

std::size_t connections_allowed(std::size_t wanted) {
    // The parts of a split model, a template, the log's rotation: each a few at most.
    constexpr std::size_t kReserve = 64;
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
    if (limit.rlim_cur < limit.rlim_max) {
        const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
    }
    if (limit.rlim_cur == RLIM_INFINITY) return wanted;
    const std::size_t taken = num_open_descriptors() + kReserve;
    const auto most = static_cast<std::size_t>(limit.rlim_cur);
    return std::clamp(most > taken ? most - taken : 0, std::size_t{1},
                      std::max(wanted, std::size_t{1}));
}

}  // namespace pagoda::http
