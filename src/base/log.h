#pragma once
// Logging to standard error, as text or JSON lines. A Logger is passed down from main(); there is
// no global one. Thread-safe. No prompt text is ever logged.

#include <memory>
#include <optional>
#include <string_view>

namespace pagoda::base {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };
// Their names in their order, separated by '|'.
inline constexpr std::string_view kLogLevelNames = "debug|info|warning|error";
inline constexpr std::string_view kLogFormatNames = "text|json";
// Nothing for what is no such name.
[[nodiscard]] std::optional<LogLevel> parse_log_level(std::string_view name);
[[nodiscard]] std::optional<LogFormat> parse_log_format(std::string_view name);

class Logger {
  public:
    struct Options {
        LogLevel level = LogLevel::kInfo;
        LogFormat format = LogFormat::kText;
    };
    explicit Logger(const Options& options);
    ~Logger();
    Logger(const Logger&) = delete;
    Logger& operator=(const Logger&) = delete;

    void debug(std::string_view message) { write(LogLevel::kDebug, message); }
    void info(std::string_view message) { write(LogLevel::kInfo, message); }
    void warning(std::string_view message) { write(LogLevel::kWarning, message); }
    void error(std::string_view message) { write(LogLevel::kError, message); }
    [[nodiscard]] bool enabled(LogLevel level) const;

  private:
    void write(LogLevel level, std::string_view message);
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda::base
