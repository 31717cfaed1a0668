#include "serve/http/request_ids.h"

#include <algorithm>
#include <random>

#include <fmt/core.h>

namespace pagoda::http {

RequestIds::RequestIds() {
    std::random_device device;
    process_ = (static_cast<std::uint64_t>(device()) << 32) | device();
}

std::string RequestIds::next() {
    return fmt::format("req-{:016x}{:08x}", process_, counter_.fetch_add(1));
}

bool RequestIds::is_sane(std::string_view id) {
    return !id.empty() && id.size() <= 128 &&
           std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace pagoda::http
