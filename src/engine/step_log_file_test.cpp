#include "engine/step_log_file.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pagoda::engine {
namespace {

struct StepLogFileTest : testing::Test {
    void SetUp() override {
        std::string name = testing::TempDir() + "step_log_XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder = name;
    }
    void TearDown() override { std::filesystem::remove_all(folder); }

    std::unique_ptr<StepLogFile> make(const std::string& path, StepLogFile::Limits limits = {}) {
        auto log = StepLogFile::create(path, logger, limits);
        EXPECT_TRUE(log.ok());
        return std::move(log).value();
    }
    [[nodiscard]] std::string path() const { return folder + "/log"; }
    [[nodiscard]] std::string written() const {
        std::ifstream stream(path());
        return {std::istreambuf_iterator<char>(stream), {}};
    }

    base::Logger logger{base::Logger::Options{}};
    std::string folder;
};

TEST_F(StepLogFileTest, WritesEveryLineForItsOwnerAlone) {
    std::string expected;
    auto log = make(path());
    for (int i = 0; i < 10'000; ++i) {
        const std::string line = "line " + std::to_string(i) + "\n";
        log->add(line);
        expected += line;
    }
    EXPECT_TRUE(log->is_on());
    log.reset();
    EXPECT_EQ(written(), expected);
    EXPECT_EQ(std::filesystem::status(path()).permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    make(path()).reset();
    EXPECT_EQ(written(), "");
}

TEST_F(StepLogFileTest, NamesAFileThatCantBeMade) {
    const auto log = StepLogFile::create(folder + "/none/log", logger);
    ASSERT_FALSE(log.ok());
    EXPECT_EQ(log.error().code, base::ErrorCode::kIo);
    EXPECT_NE(log.error().message.find("none/log can't be written: No such file"),
              std::string::npos)
        << log.error().message;
}

int count(const std::string& text, const std::string& part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++found;
    return found;
}

TEST_F(StepLogFileTest, AWriteThatFailsEndsItWithOneWarning) {
    testing::internal::CaptureStderr();
    auto log = make("/dev/full");
    log->add("a\n");
    while (log->is_on()) std::this_thread::yield();
    for (int i = 0; i < 100; ++i) log->add("b\n");
    log.reset();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(count(said, "step_log /dev/full ends here: No space left on device"), 1) << said;
    EXPECT_EQ(count(said, "ends here"), 1) << said;
}

TEST_F(StepLogFileTest, EndsWithWholeLinesAtItsLargestSize) {
    testing::internal::CaptureStderr();
    auto log = make(path(), {.file_bytes = 25});
    for (int i = 0; i < 10; ++i) log->add("ten bytes\n");
    EXPECT_FALSE(log->is_on());
    log.reset();
    EXPECT_EQ(count(testing::internal::GetCapturedStderr(), "its largest size of 25 bytes"), 1);
    EXPECT_EQ(written(), "ten bytes\nten bytes\n");
}

// A pipe that nobody empties stands for a disk that hangs: add() returns all the same.
TEST_F(StepLogFileTest, ADiskThatHangsEndsItAndKeepsNobodyWaiting) {
    std::signal(SIGPIPE, SIG_IGN);
    ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
    const int reader = ::open(path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ASSERT_GE(reader, 0);
    testing::internal::CaptureStderr();
    auto log = make(path(), {.waiting_bytes = std::size_t{1} << 20});
    const std::string line(1000, 'x');
    for (int i = 0; i < 4000 && log->is_on(); ++i) log->add(line);
    EXPECT_FALSE(log->is_on());
    ::close(reader);
    log.reset();
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(count(said, "more than the disk has taken"), 1) << said;
    EXPECT_EQ(count(said, "ends here"), 1) << said;
}

}  // namespace
}  // namespace pagoda::engine
