#include "bench_baseline.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace pagoda::apps {
namespace {

std::string path_of(std::string_view name) {
    return testing::TempDir() + std::string(name);
}

Arguments arguments(std::string_view option, const std::string& path) {
    Arguments given;
    given.options[std::string(option)] = {path};
    return given;
}

TEST(BenchBaseline, WhatOneRunSavesTheNextIsComparedWith) {
    const std::string path = path_of("saved.json");
    auto first = BenchBaseline::open(arguments("save-baseline", path), "a machine");
    ASSERT_TRUE(first.ok());
    EXPECT_FALSE(first->is_compared());
    EXPECT_EQ(first->record("linear Q4_0", 0.5), std::nullopt);
    ASSERT_TRUE(first->finish().ok());
    auto second = BenchBaseline::open(arguments("baseline", path), "a machine");
    ASSERT_TRUE(second.ok()) << second.error().message;
    EXPECT_TRUE(second->is_compared());
    EXPECT_EQ(second->record("linear Q4_0", 0.6), 0.5);
    EXPECT_EQ(second->record("linear Q8_0", 0.6), std::nullopt);
}

TEST(BenchBaseline, AFileThatIsNoneIsRefusedWithTheReason) {
    const auto error_of = [](const std::string& text) {
        const std::string path = path_of("damaged.json");
        std::ofstream(path) << text;
        const auto opened = BenchBaseline::open(arguments("baseline", path), "a machine");
        return opened.ok() ? std::string() : opened.error().message;
    };
    for (const char* text :
         {"", "[]", "{\"version\":2}", "{\"version\":1,\"shares\":{}}",
          "{\"version\":1,\"shares\":{\"a\":0}}", "{\"version\":1,\"shares\":{\"a\":\"x\"}}"})
        EXPECT_NE(error_of(text).find("is no baseline: "), std::string::npos) << text;
    EXPECT_EQ(error_of("{\"version\":1,\"shares\":{\"a\":0.5}}"), "");
    const auto reason_of = [](const std::string& path) {
        const auto opened = BenchBaseline::open(arguments("baseline", path), "a machine");
        return opened.ok() ? std::string() : opened.error().message;
    };
    const std::string missing = path_of("missing/x.json");
    EXPECT_EQ(reason_of(missing), missing + ": cannot be read: No such file or directory");
    EXPECT_EQ(reason_of("/"), "/: cannot be read: Is a directory");
}

TEST(BenchBaseline, APlaceThatCannotBeWrittenIsFoundBeforeTheRun) {
    const auto error_of = [](const std::string& path) {
        const auto opened = BenchBaseline::open(arguments("save-baseline", path), "a machine");
        return opened.ok() ? std::string() : opened.error().message;
    };
    const std::string missing = path_of("missing/x.json");
    EXPECT_EQ(error_of(missing),
              missing + ": the baseline can't be written: No such file or directory");
    const std::string folder = testing::TempDir();
    EXPECT_EQ(error_of(folder), folder + ": the baseline can't be written: Is a directory");
    const std::string good = path_of("tried.json");
    EXPECT_EQ(error_of(good), "");
    EXPECT_FALSE(std::filesystem::exists(good));
    EXPECT_FALSE(std::filesystem::exists(good + ".part"));
}

TEST(BenchBaseline, AFailureToSaveLeavesNothingBehindAndSaysWhy) {
    const std::string path = path_of("taken.json");
    auto baseline = BenchBaseline::open(arguments("save-baseline", path), "a machine");
    ASSERT_TRUE(baseline.ok());
    baseline->record("linear Q4_0", 0.5);
    std::filesystem::create_directory(path);
    const auto saved = baseline->finish();
    std::filesystem::remove(path);
    ASSERT_FALSE(saved.ok());
    EXPECT_EQ(saved.error().message, path + ": the baseline can't be written: Is a directory");
    EXPECT_FALSE(std::filesystem::exists(path + ".part"));
}

TEST(BenchBaseline, ARunThatMeasuredNothingSavesNothing) {
    const std::string path = path_of("nothing.json");
    const auto baseline = BenchBaseline::open(arguments("save-baseline", path), "a machine");
    ASSERT_TRUE(baseline.ok());
    EXPECT_TRUE(baseline->finish().ok());
    EXPECT_FALSE(std::filesystem::exists(path));
}

class MaxDrop : public testing::Test {
  protected:
    MaxDrop() {
        auto first = BenchBaseline::open(arguments("save-baseline", path_), "a machine");
        for (const char* key : {"a", "b", "c"}) first->record(key, 0.5);
        EXPECT_TRUE(first->finish().ok());
    }
    // What a run with these shares is told.
    std::string told(const std::string& percent, const std::map<std::string, double>& shares) {
        Arguments given = arguments("baseline", path_);
        if (!percent.empty()) given.options["max-drop"] = {percent};
        auto baseline = BenchBaseline::open(given, "a machine");
        if (!baseline) return baseline.error().message;
        for (const auto& [key, share] : shares) baseline->record(key, share);
        const auto checked = baseline->finish();
        return checked.ok() ? "" : checked.error().message;
    }

    const std::string path_ = path_of("gate.json");
};

TEST_F(MaxDrop, NamesHowManySharesFellByMoreAndTheWorst) {
    EXPECT_EQ(told("5", {{"a", 0.47}, {"b", 0.4}, {"c", 0.49}}),
              "--max-drop: 2 of 3 shares fell by more than 5 %, most of all \"b\": -20.0%");
}

TEST_F(MaxDrop, LessThanThatAndWhatRoseAndNewSharesPass) {
    EXPECT_EQ(told("5", {{"a", 0.476}, {"b", 0.9}, {"new", 0.01}}), "");
    EXPECT_EQ(told("25", {{"a", 0.4}}), "");
    EXPECT_EQ(told("", {{"a", 0.1}}), "");  // nothing was asked for
}

TEST_F(MaxDrop, ARunThatCannotBeComparedDoesNotPass) {
    const std::string reason = "the baseline holds none of the shares that were measured";
    EXPECT_EQ(told("5", {{"new", 0.5}}), "--max-drop: " + reason);
    EXPECT_EQ(told("5", {}), "--max-drop: " + reason);
}

TEST_F(MaxDrop, SharesThatFellByMoreDoNotBecomeTheBaseline) {
    const auto finish = [&](double share) {
        Arguments given = arguments("baseline", path_);
        given.options["save-baseline"] = {path_};
        given.options["max-drop"] = {"5"};
        auto baseline = BenchBaseline::open(given, "a machine");
        baseline->record("a", share);
        const auto finished = baseline->finish();
        return finished.ok() ? "" : finished.error().message;
    };
    for (int run = 0; run < 2; ++run)
        EXPECT_NE(finish(0.4).find("-20.0%; no baseline is saved"), std::string::npos);
    EXPECT_EQ(finish(0.49), "");  // and is what the next is compared with
    EXPECT_EQ(finish(0.47), "");
}

TEST_F(MaxDrop, IsAPercentageAndNeedsABaseline) {
    for (const char* percent : {"-1", "101", "nan", "five"})
        EXPECT_NE(told(percent, {{"a", 0.5}}), "") << percent;
    const auto alone = BenchBaseline::open(arguments("max-drop", "5"), "a machine");
    ASSERT_FALSE(alone.ok());
    EXPECT_NE(alone.error().message.find("needs --baseline"), std::string::npos);
}

TEST(ChangeText, IsRelativeToTheEarlierShare) {
    EXPECT_EQ(change_text(0.5, 0.55), "+10.0%");
    EXPECT_EQ(change_text(0.5, 0.45), "-10.0%");
    EXPECT_EQ(change_text(std::nullopt, 0.45), "new");
}

}  // namespace
}  // namespace pagoda::apps
