#pragma once
// Logging to standard error, as text or JSON lines: a message, or an event with fields. A Logger is
// passed down from main(); there is no global one. Thread-safe. No prompt text is ever logged.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

namespace pagoda::base {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };
// Their names in their order, separated by '|'.
inline constexpr std::string_view kLogLevelNames = "debug|info|warning|error";
inline constexpr std::string_view kLogFormatNames = "text|json";
// Nothing for what is no such name.
[[nodiscard]] std::optional<LogLevel> parse_log_level(std::string_view name);
[[nodiscard]] std::optional<LogFormat> parse_log_format(std::string_view name);

struct LogField {
    std::string_view name;  // not one of time, level and message
    std::variant<std::string_view, std::int64_t> value;
};

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
    // Text: "name field=value field=value", where a value has no blanks, controls, quotes, '=' or
    // '%' of its own (they are percent-encoded), is cut at 256 bytes, and "-" when empty. JSON: the
    // name is the message, every field a member.
    void event(LogLevel level, std::string_view name, std::span<const LogField> fields);
    [[nodiscard]] bool enabled(LogLevel level) const;

  private:
    void write(LogLevel level, std::string_view message);
    void put(LogLevel level, std::string_view line);
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda::base
