#include "decode/stop.h"

#include <random>

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace pagoda::decode {
namespace {

struct Outcome {
    std::string text;
    std::optional<std::string> match;
    friend bool operator==(const Outcome&, const Outcome&) = default;
};

StopStrings stop_strings(const std::vector<std::string>& strings, bool include) {
    return {strings.empty() ? nullptr : std::make_shared<const StopAutomaton>(strings), include};
}

Outcome run(const std::vector<std::string>& stops, const std::vector<std::string>& chunks,
            bool include = false) {
    StopStrings strings = stop_strings(stops, include);
    Outcome outcome;
    for (const std::string& chunk : chunks) {
        StopStrings::Step step = strings.append(chunk);
        outcome.text += step.text;
        if (step.match) {
            outcome.match = step.match;
            return outcome;
        }
    }
    outcome.text += strings.finish();
    return outcome;
}

std::vector<std::string> bytes_of(const std::string& text) {
    std::vector<std::string> chunks;
    for (const char byte : text) chunks.emplace_back(1, byte);
    return chunks;
}

// What must come out, by looking at every place: the match that ends first, the longest of those.
Outcome reference(const std::vector<std::string>& stops, const std::string& text) {
    for (std::size_t end = 1; end <= text.size(); ++end) {
        const std::string* longest = nullptr;
        for (const std::string& stop : stops) {
            if (end < stop.size() || text.compare(end - stop.size(), stop.size(), stop) != 0)
                continue;
            if (longest == nullptr || stop.size() > longest->size()) longest = &stop;
        }
        if (longest != nullptr) return {text.substr(0, end - longest->size()), *longest};
    }
    return {text, std::nullopt};
}

TEST(StopStrings, AStopSpelledOverManyChunksNeverLeaksAByte) {
    StopStrings strings = stop_strings({"###STOP"}, false);
    std::string sent;
    for (const char* chunk : {"hello ##", "#", "ST", "O"}) {
        const StopStrings::Step step = strings.append(chunk);
        EXPECT_FALSE(step.match.has_value());
        sent += step.text;
        EXPECT_EQ(sent, "hello ");
    }
    const StopStrings::Step last = strings.append("P and more");
    EXPECT_EQ(last.match, "###STOP");
    EXPECT_EQ(last.text, "");
}

TEST(StopStrings, HeldTextIsReleasedOnceItCannotMatchAndOnceAtTheEnd) {
    StopStrings strings = stop_strings({"aab"}, false);
    EXPECT_EQ(strings.append("aa").text, "");
    EXPECT_EQ(strings.append("a").text, "a");  // "aa" may still become a stop
    EXPECT_EQ(strings.append("c").text, "aac");
    EXPECT_EQ(strings.append("xaa").text, "x");
    EXPECT_EQ(strings.finish(), "aa");
    EXPECT_EQ(strings.finish(), "");
}

TEST(StopStrings, TheMatchThatEndsFirstWinsAndOfThoseTheLongest) {
    EXPECT_EQ(run({"abcd", "bc"}, {"xabcd"}), (Outcome{"xa", "bc"}));
    EXPECT_EQ(run({"bc", "abc"}, {"xabcd"}), (Outcome{"x", "abc"}));
    EXPECT_EQ(run({"c", "abc"}, {"xab", "cd"}), (Outcome{"x", "abc"}));
    EXPECT_EQ(run({"stop", "st"}, {"best"}), (Outcome{"be", "st"}));
    EXPECT_EQ(run({"abc", "abd"}, {"ababd"}), (Outcome{"ab", "abd"}));
}

TEST(StopStrings, IncludedStopEndsTheOutput) {
    EXPECT_EQ(run({"END"}, {"the EN", "D is near"}, true), (Outcome{"the END", "END"}));
}

TEST(StopStrings, WithoutStringsAllTextPasses) {
    EXPECT_EQ(run({}, {"abc", "", "def"}), (Outcome{"abcdef", std::nullopt}));
}

TEST(StopStrings, SentTextEndsOnCharacterBoundaries) {
    const std::string text =
        "gr\xC3\xBC\xC3\x9F"
        "e \xF0\x9F\x90\xBC!";
    StopStrings strings =
        stop_strings({"\xF0\x9F\x90\xBB"}, false);  // shares three bytes with the text's own
    std::string sent;
    for (const char byte : text) {
        const StopStrings::Step step = strings.append(std::string(1, byte));
        EXPECT_TRUE(base::is_valid_utf8(step.text));
        sent += step.text;
    }
    EXPECT_EQ(sent + strings.finish(), text);
    EXPECT_EQ(run({"\xF0\x9F\x90\xBC"}, bytes_of(text)), (Outcome{"gr\xC3\xBC\xC3\x9F"
                                                                  "e ",
                                                                  "\xF0\x9F\x90\xBC"}));
}

TEST(StopStrings, EveryWayOfCuttingTheTextGivesTheSameAsLookingAtEveryPlace) {
    std::mt19937 random(5);
    const auto word = [&](std::size_t max_size) {
        std::string out;
        for (std::size_t size = 1 + random() % max_size; size > 0; --size) {
            out += static_cast<char>('a' + random() % 2);
        }
        return out;
    };
    for (int round = 0; round < 3000; ++round) {
        std::vector<std::string> stops;
        for (std::size_t count = 1 + random() % 4; count > 0; --count) stops.push_back(word(7));
        std::string text;
        std::vector<std::string> chunks;
        for (std::size_t count = random() % 8; count > 0; --count) {
            chunks.push_back(word(4));
            text += chunks.back();
        }
        EXPECT_EQ(run(stops, chunks), reference(stops, text)) << text;
        EXPECT_EQ(run(stops, bytes_of(text)), reference(stops, text)) << text;
    }
}

TEST(StopStrings, AStopStringThatEndsInUncheckedTextIsText) {
    StopStrings strings = stop_strings({"END"}, false);
    EXPECT_EQ(strings.append_unchecked("the END"), "the END");
    EXPECT_EQ(strings.append_unchecked(" EN"), " ");
    EXPECT_EQ(strings.append_unchecked("D"), "END");
    const StopStrings::Step step = strings.append(" and END");
    EXPECT_EQ(step.text, " and ");
    EXPECT_EQ(step.match, "END");
}

TEST(StopStrings, AStopStringThatBeginsInUncheckedTextStillEndsTheOutput) {
    StopStrings strings = stop_strings({"###STOP"}, false);
    EXPECT_EQ(strings.append_unchecked("a ###ST"), "a ");
    const StopStrings::Step step = strings.append("OP b");
    EXPECT_EQ(step.text, "");
    EXPECT_EQ(step.match, "###STOP");
    // One that overlaps with one that did not count.
    StopStrings twins = stop_strings({"aa"}, false);
    EXPECT_EQ(twins.append_unchecked("xaa"), "xa");
    EXPECT_EQ(twins.append("a").match, "aa");
}

TEST(StopStrings, UncheckedTextIsNotWithheld) {
    StopStrings strings = stop_strings({"ab", "abcd"}, false);
    EXPECT_EQ(strings.append_unchecked("ab"), "");  // may still become "abcd"
    EXPECT_EQ(strings.append_unchecked("c"), "");
    EXPECT_EQ(strings.append_unchecked("d"), "abcd");
    EXPECT_EQ(strings.append_unchecked("xab"), "x");
    EXPECT_EQ(strings.finish(), "ab");
}

TEST(StopStrings, UncheckedPiecesJoinAndOnlyMatchesThatEndAfterThemCount) {
    std::mt19937 random(7);
    for (int round = 0; round < 3000; ++round) {
        std::string text;
        for (std::size_t size = random() % 12; size > 0; --size)
            text += static_cast<char>('a' + random() % 2);
        const std::string stop = text.substr(0, 1 + random() % 4);
        if (stop.empty()) continue;
        const std::size_t num_unchecked = random() % (text.size() + 1);
        StopStrings strings = stop_strings({stop}, false);
        Outcome outcome;
        for (std::size_t at = 0; at < text.size() && !outcome.match; ++at) {
            const std::string_view byte = std::string_view(text).substr(at, 1);
            if (at < num_unchecked) {
                outcome.text += strings.append_unchecked(byte);
                continue;
            }
            StopStrings::Step step = strings.append(byte);
            outcome.text += step.text;
            outcome.match = step.match;
        }
        if (!outcome.match) outcome.text += strings.finish();
        const std::size_t first =
            num_unchecked + 1 < stop.size() ? 0 : num_unchecked + 1 - stop.size();
        const std::size_t found = text.find(stop, first);
        const Outcome expected =
            found == text.npos ? Outcome{text, std::nullopt} : Outcome{text.substr(0, found), stop};
        EXPECT_EQ(outcome, expected) << text << " " << stop << " " << num_unchecked;
    }
}

TEST(StopStrings, ALongHoldIsLinear) {
    // A text that nearly matches at every place: quadratic work would not end in the test's time.
    const std::string stop = std::string(4000, 'a') + "b";
    StopStrings strings = stop_strings({stop}, false);
    const std::string chunk(1000, 'a');
    std::size_t sent = 0;
    for (int i = 0; i < 2000; ++i) sent += strings.append(chunk).text.size();
    EXPECT_EQ(sent + strings.finish().size(), 2'000'000U);
}

// The most that a request may send, all different from the first byte on or alike to the last.
std::vector<std::string> largest_stops(bool is_alike) {
    std::vector<std::string> strings;
    for (std::size_t number = 0; number < kMaxStopStrings; ++number) {
        std::string string(kMaxAllStopBytes / kMaxStopStrings, static_cast<char>('!' + number));
        if (is_alike) std::fill(string.begin(), string.end() - 1, 'a');
        strings.push_back(std::move(string));
    }
    return strings;
}

TEST(StopAutomaton, TheLargestTakesLessThan256KiBForAllSequencesOfItsRequest) {
    for (const bool is_alike : {false, true}) {
        const std::vector<std::string> stops = largest_stops(is_alike);
        ASSERT_TRUE(validate_stop_strings(stops).ok());
        const auto automaton = std::make_shared<const StopAutomaton>(stops);
        EXPECT_LT(automaton->bytes(), 256U * 1024);
        std::vector<StopStrings> sequences(128, StopStrings(automaton, false));
        for (StopStrings& sequence : sequences) {
            const StopStrings::Step step = sequence.append("text " + stops.back());
            EXPECT_EQ(step.text, "text ");
            EXPECT_EQ(step.match, stops.back());
        }
    }
    EXPECT_LE(sizeof(StopStrings), 64U);
}

TEST(StopStrings, RefusalsNameTheLimit) {
    EXPECT_TRUE(validate_stop_strings({"a", "\n"}).ok());
    EXPECT_NE(validate_stop_strings(std::vector<std::string>(65, "a")).error().message.find("64"),
              std::string::npos);
    EXPECT_EQ(validate_stop_strings({"a", ""}).error().message, "stop string 1 is empty");
    EXPECT_NE(validate_stop_strings({std::string(5000, 'a')}).error().message.find("4096"),
              std::string::npos);
    EXPECT_EQ(
        validate_stop_strings(std::vector<std::string>(5, std::string(4000, 'a'))).error().message,
        "the stop strings have 20000 bytes together, at most 16384 are allowed");
    EXPECT_NE(validate_stop_strings({"\xFF"}).error().message.find("UTF-8"), std::string::npos);
}

TEST(StopRules, EndTokensStopTokensAndLength) {
    using Verdict = StopRules::Verdict;
    const StopRules rules{.end_tokens = {2, 9}, .stop_tokens = {5}, .max_tokens = 3};
    EXPECT_EQ(rules.check(2, 1), Verdict::kStop);
    EXPECT_EQ(rules.check(9, 3), Verdict::kStop);  // a stop at the limit is a stop
    EXPECT_EQ(rules.check(5, 1), Verdict::kStop);
    EXPECT_EQ(rules.check(4, 2), Verdict::kGoOn);
    EXPECT_EQ(rules.check(4, 3), Verdict::kLength);
}

}  // namespace
}  // namespace pagoda::decode
