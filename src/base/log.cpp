#include "base/log.h"

#include <string>

#include <fmt/core.h>
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

// A field's text in a text line: visible ASCII but for the characters that could end or fake one.
std::string field_text(std::string_view text) {
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

std::string event_text(std::string_view name, std::span<const LogField> fields) {
    std::string line(name);
    for (const LogField& field : fields) {
        const auto* number = std::get_if<std::int64_t>(&field.value);
        line +=
            fmt::format(" {}={}", field.name,
                        number != nullptr ? std::to_string(*number)
                                          : field_text(std::get<std::string_view>(field.value)));
    }
    return line;
}

// The members of an object, without its braces: the message first.
std::string event_members(std::string_view name, std::span<const LogField> fields) {
    std::string members = Json(name).dump();
    for (const LogField& field : fields)
        members += fmt::format(
            ",{}:{}", Json(field.name).dump(),
            std::visit([](const auto& value) { return Json(value).dump(); }, field.value));
    return members;
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

// Nothing that comes from outside can forge a line or speak to a terminal.
void Logger::write(LogLevel level, std::string_view message) {
    if (!enabled(level)) return;
    const bool json = impl_->options.format == LogFormat::kJson;
    put(level, json ? terminal_json(Json(message).dump()) : terminal_line(message));
}

void Logger::event(LogLevel level, std::string_view name, std::span<const LogField> fields) {
    if (!enabled(level)) return;
    const bool json = impl_->options.format == LogFormat::kJson;
    put(level, json ? terminal_json(event_members(name, fields)) : event_text(name, fields));
}

void Logger::put(LogLevel level, std::string_view line) {
    impl_->logger.log(library_level(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace pagoda::base
