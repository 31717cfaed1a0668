#include "serve/http/request_log.h"

#include <string_view>

#include <fmt/core.h>

namespace pagoda::http {
namespace {

// One value of a line: visible ASCII but for the three characters that could end or fake one.
std::string value_of(std::string_view text) {
    constexpr std::size_t kLongest = 256;
    if (text.empty()) return "-";
    std::string result;
    for (const char c : text) {
        if (result.size() >= kLongest) return result + "...";
        if (c > ' ' && c < '\x7f' && c != '"' && c != '%' && c != '=')
            result.push_back(c);
        else
            result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return result;
}

}  // namespace

std::string request_line(const RequestRecord& record, std::chrono::milliseconds took) {
    return fmt::format("request method={} path={} status={} ms={} bytes={} id={} client={}",
                       value_of(record.method), value_of(record.path), record.status, took.count(),
                       record.bytes, value_of(record.id), value_of(record.client));
}

void log_request(base::Logger& logger, const RequestRecord& record) {
    if (!logger.enabled(record.is_quiet ? base::LogLevel::kDebug : base::LogLevel::kInfo)) return;
    const auto took = std::chrono::steady_clock::now() - record.began;
    const std::string line =
        request_line(record, std::chrono::duration_cast<std::chrono::milliseconds>(took));
    if (record.is_quiet)
        logger.debug(line);
    else
        logger.info(line);
}

}  // namespace pagoda::http
