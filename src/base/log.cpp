#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "base/json.h"
#include "base/utf8.h"

namespace pagoda::base {
namespace {

spdlog::level::level_enum library_level(LogLevel level) {
    switch (level) {
        case LogLevel::kDebug:
            return spdlog::level::debug;
        case LogLevel::kInfo:
            return spdlog::level::info;
        case LogLevel::kWarning:
            return spdlog::level::warn;
        case LogLevel::kError:
            return spdlog::level::err;
    }
    return spdlog::level::err;
}

// The message as one line of valid UTF-8, control characters as \xHH, so that nothing that comes
// from outside can forge a line or speak to a terminal.
std::string one_line(std::string_view message) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string line;
    line.reserve(message.size());
    while (!message.empty()) {
        const Utf8Char next = decode_utf8(message);
        message.remove_prefix(next.bytes);
        if (next.code == U'\n') {
            line.append("\\n");
        } else if (next.code < 0x20 || (next.code >= 0x7f && next.code < 0xa0)) {
            line.append("\\x");
            line.push_back(kDigits[next.code >> 4]);
            line.push_back(kDigits[next.code & 0xf]);
        } else {
            append_utf8(line, next.code);
        }
    }
    return line;
}

}  // namespace

struct Logger::Impl {
    explicit Impl(const Options& chosen)
        : options(chosen), logger("pagoda", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
        logger.set_level(library_level(options.level));
        const bool json = options.format == LogFormat::kJson;
        logger.set_pattern(json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%v})"
                                : "%Y-%m-%dT%H:%M:%S.%eZ %l: %v",
                           spdlog::pattern_time_type::utc);
    }

    const Options options;
    spdlog::logger logger;
};

Logger::Logger(const Options& options) : impl_(std::make_unique<Impl>(options)) {}
Logger::~Logger() = default;

bool Logger::enabled(LogLevel level) const {
    return level >= impl_->options.level;
}

void Logger::write(LogLevel level, std::string_view message) {
    if (!enabled(level)) return;
    const bool json = impl_->options.format == LogFormat::kJson;
    const std::string line = json ? Json(message).dump() : one_line(message);
    impl_->logger.log(library_level(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace pagoda::base
