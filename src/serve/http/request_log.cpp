#include "serve/http/request_log.h"

#include <array>

namespace pagoda::http {

void log_request(base::Logger& logger, const RequestRecord& record) {
    using std::chrono::milliseconds;
    const auto took = std::chrono::steady_clock::now() - record.began;
    const std::array fields{
        base::LogField{"method", record.method},
        base::LogField{"path", record.path},
        base::LogField{"status", std::int64_t{record.status}},
        base::LogField{"ms", std::int64_t{std::chrono::duration_cast<milliseconds>(took).count()}},
        base::LogField{"bytes", static_cast<std::int64_t>(record.bytes)},
        base::LogField{"id", record.id},
        base::LogField{"client", record.client},
    };
    logger.event(record.is_quiet ? base::LogLevel::kDebug : base::LogLevel::kInfo, "request",
                 fields);
}

}  // namespace pagoda::http
