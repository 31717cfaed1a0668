#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "base/json.h"
#include "base/terminal_text.h"

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

// The place of a name among names that '|' separates, as the enumerator that has it.
template <class Enum>
std::optional<Enum> parse_name(std::string_view names, std::string_view name) {
    for (int place = 0;; ++place) {
        const std::size_t bar = names.find('|');
        if (names.substr(0, bar) == name) return static_cast<Enum>(place);
        if (bar == std::string_view::npos) return std::nullopt;
        names.remove_prefix(bar + 1);
    }
}

}  // namespace

std::optional<LogLevel> parse_log_level(std::string_view name) {
    return parse_name<LogLevel>(kLogLevelNames, name);
}

std::optional<LogFormat> parse_log_format(std::string_view name) {
    return parse_name<LogFormat>(kLogFormatNames, name);
}

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
    // Nothing that comes from outside can forge a line or speak to a terminal.
    const std::string line = json ? terminal_json(Json(message).dump()) : terminal_line(message);
    impl_->logger.log(library_level(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace pagoda::base
