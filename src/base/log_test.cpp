#include "base/log.h"

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/json.h"

namespace pagoda::base {
namespace {

// What goes to standard error during the life of the object.
class CapturedStandardError {
  public:
    CapturedStandardError() : file_(std::tmpfile()), saved_(dup(STDERR_FILENO)) {
        std::fflush(stderr);
        dup2(fileno(file_), STDERR_FILENO);
    }
    ~CapturedStandardError() {
        restore();
        std::fclose(file_);
    }
    CapturedStandardError(const CapturedStandardError&) = delete;
    CapturedStandardError& operator=(const CapturedStandardError&) = delete;

    std::vector<std::string> lines() {
        restore();
        std::rewind(file_);
        std::vector<std::string> lines(1);
        for (int byte = std::fgetc(file_); byte != EOF; byte = std::fgetc(file_)) {
            if (byte == '\n') {
                lines.emplace_back();
            } else {
                lines.back().push_back(static_cast<char>(byte));
            }
        }
        EXPECT_EQ(lines.back(), "") << "the last line is not ended";
        lines.pop_back();
        return lines;
    }

  private:
    void restore() {
        if (saved_ < 0) return;
        std::fflush(stderr);
        dup2(saved_, STDERR_FILENO);
        close(saved_);
        saved_ = -1;
    }

    std::FILE* file_;
    int saved_;
};

TEST(Logger, WritesTimeLevelAndMessage) {
    CapturedStandardError captured;
    Logger({}).warning("disk is {} full");
    const std::vector<std::string> lines = captured.lines();
    ASSERT_EQ(lines.size(), 1U);
    // 2026-01-31T12:00:00.123Z warning: ...
    EXPECT_EQ(lines[0].substr(24), " warning: disk is {} full");
    EXPECT_EQ(lines[0][10], 'T');
    EXPECT_EQ(lines[0][23], 'Z');
}

TEST(Logger, LeavesOutWhatIsBelowItsLevel) {
    CapturedStandardError captured;
    Logger logger({.level = LogLevel::kWarning});
    logger.debug("no");
    logger.info("no");
    logger.warning("yes");
    logger.error("yes");
    EXPECT_EQ(captured.lines().size(), 2U);
    EXPECT_FALSE(logger.enabled(LogLevel::kInfo));
    EXPECT_TRUE(logger.enabled(LogLevel::kError));
}

TEST(Logger, JsonLinesAreJsonWhateverTheMessage) {
    CapturedStandardError captured;
    Logger logger({.level = LogLevel::kDebug, .format = LogFormat::kJson});
    logger.debug("plain");
    logger.error("\"quoted\"\n{\"level\":\"info\"} \xff %v");
    const std::vector<std::string> lines = captured.lines();
    ASSERT_EQ(lines.size(), 2U);
    const Json first = Json::parse(lines[0]).value();
    EXPECT_EQ(first.find("level")->as_string(), "debug");
    EXPECT_EQ(first.find("message")->as_string(), "plain");
    EXPECT_EQ(first.find("time")->as_string().size(), 24U);
    const Json second = Json::parse(lines[1]).value();
    EXPECT_EQ(second.find("level")->as_string(), "error");
    EXPECT_EQ(second.find("message")->as_string(),
              "\"quoted\"\n{\"level\":\"info\"} \xef\xbf\xbd %v");
}

TEST(Logger, AMessageCantForgeALineOrDriveATerminal) {
    CapturedStandardError captured;
    Logger({}).info("a\n2026-01-31T12:00:00.123Z error: forged\r\x1b[31m\x7f\xc2\x9b\xff \xc3\xa9");
    const std::vector<std::string> lines = captured.lines();
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0].substr(24),
              " info: a\\n2026-01-31T12:00:00.123Z error: forged\\x0d\\x1b[31m\\x7f\\u009b\\xff "
              "\xc3\xa9");
}

TEST(LogNames, AreThoseOfTheEnumerators) {
    EXPECT_EQ(parse_log_level("debug"), LogLevel::kDebug);
    EXPECT_EQ(parse_log_level("info"), LogLevel::kInfo);
    EXPECT_EQ(parse_log_level("warning"), LogLevel::kWarning);
    EXPECT_EQ(parse_log_level("error"), LogLevel::kError);
    EXPECT_EQ(parse_log_format("text"), LogFormat::kText);
    EXPECT_EQ(parse_log_format("json"), LogFormat::kJson);
    for (const char* none : {"", "INFO", "info|warning", "fatal"})
        EXPECT_EQ(parse_log_level(none), std::nullopt) << none;
}

TEST(Logger, LinesOfManyThreadsStayWhole) {
    CapturedStandardError captured;
    {
        Logger logger({});
        std::vector<std::thread> threads;
        threads.reserve(4);
        for (int thread = 0; thread < 4; ++thread) {
            threads.emplace_back([&logger] {
                for (int line = 0; line < 200; ++line) logger.info("0123456789");
            });
        }
        for (std::thread& thread : threads) thread.join();
    }
    const std::vector<std::string> lines = captured.lines();
    ASSERT_EQ(lines.size(), 800U);
    for (const std::string& line : lines) EXPECT_EQ(line.substr(24), " info: 0123456789");
}

}  // namespace
}  // namespace pagoda::base
