#include "loadgen/workload.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace pagoda::loadgen {
namespace {

std::int64_t num_words(std::string_view text) {
    return text.empty() ? 0 : 1 + std::count(text.begin(), text.end(), ' ');
}

std::string all_of(const Ask& ask) {
    std::string text;
    for (const Message& message : ask.messages) {
        text += message.role;
        text += '\n';
        text += message.content;
        text += '\n';
    }
    return text;
}

TEST(Prompts, HaveTheirLengthsAndBeginAlikeAsFarAsIsAsked) {
    const auto workload =
        prompts({.prompt_tokens = 50, .output_tokens = 7, .shared_tokens = 20}, 3);
    std::set<std::string> texts;
    std::string shared;
    for (int i = 0; i < 20; ++i) {
        const auto ask = workload->next();
        ASSERT_TRUE(ask);
        const std::string& text = ask->messages.at(0).content;
        EXPECT_EQ(num_words(text), 50);
        EXPECT_EQ(ask->max_tokens, 7);
        std::size_t end = 0;
        for (int word = 0; word < 20; ++word) end = text.find(' ', end + 1);
        if (shared.empty()) shared = text.substr(0, end);
        EXPECT_EQ(text.substr(0, end), shared);
        texts.insert(text);
    }
    EXPECT_EQ(texts.size(), 20U);
}

TEST(Prompts, SpreadAroundTheirMeans) {
    const auto workload = prompts({.prompt_tokens = 200, .output_tokens = 100, .spread = 0.6}, 3);
    std::int64_t sum = 0;
    std::set<std::int64_t> lengths;
    constexpr int kMany = 400;
    for (int i = 0; i < kMany; ++i) {
        const std::int64_t length = num_words(workload->next()->messages.at(0).content);
        sum += length;
        lengths.insert(length);
    }
    EXPECT_NEAR(static_cast<double>(sum) / kMany, 200, 20);
    EXPECT_GT(lengths.size(), 100U);
}

TEST(Chats, GoOnFromTheirAnswersAndShareSystemPrompts) {
    const auto workload = chats({.num_applications = 2, .mean_turns = 4}, 5);
    std::set<std::string> systems;
    std::size_t longest = 0;
    for (int i = 0; i < 200; ++i) {
        const auto ask = workload->next();
        ASSERT_TRUE(ask);
        ASSERT_EQ(ask->messages.front().role, "system");
        ASSERT_EQ(ask->messages.back().role, "user");
        systems.insert(ask->messages.front().content);
        if (ask->messages.size() > 2) {
            EXPECT_EQ(ask->messages[ask->messages.size() - 2].content, "so it is");
        }
        longest = std::max(longest, ask->messages.size());
        workload->answered(ask->session, "so it is");
    }
    EXPECT_EQ(systems.size(), 2U);
    EXPECT_GT(longest, 6U);
}

TEST(Chats, OpenANewOneWhereEveryOtherWaitsOrFailed) {
    const auto workload = chats({}, 5);
    std::set<std::size_t> sessions;
    for (int i = 0; i < 10; ++i) sessions.insert(workload->next()->session);
    EXPECT_EQ(sessions.size(), 10U);
    for (const std::size_t session : sessions) workload->answered(session, "");
    EXPECT_FALSE(sessions.contains(workload->next()->session));
}

TEST(Workload, OfTheSameSeedIsTheSame) {
    const auto texts = [](std::unique_ptr<Workload> workload) {
        std::string text;
        for (int i = 0; i < 30; ++i) {
            const auto ask = workload->next();
            text += all_of(*ask) + std::to_string(ask->max_tokens);
            workload->answered(ask->session, "yes");
        }
        return text;
    };
    EXPECT_EQ(texts(chats({}, 9)), texts(chats({}, 9)));
    EXPECT_NE(texts(chats({}, 9)), texts(chats({}, 10)));
    EXPECT_EQ(texts(prompts({.spread = 1}, 9)), texts(prompts({.spread = 1}, 9)));
}

TEST(Trace, AsksInTheOrderOfItsTimesWithEqualTextsForEqualBlocks) {
    const auto workload = read_trace(
        "{\"timestamp\": 2000, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [7, 8]}\n"
        "\n"
        "{\"timestamp\": 500, \"input_length\": 520, \"output_length\": 6, \"hash_ids\": [7, 9], "
        "\"other\": 1}\r\n"
        "{\"timestamp\": 3000.5, \"input_length\": 4, \"output_length\": 1}");
    ASSERT_TRUE(workload) << workload.error().message;
    const auto first = (*workload)->next();
    const auto second = (*workload)->next();
    const auto third = (*workload)->next();
    EXPECT_EQ(first->at, std::chrono::milliseconds(500));
    EXPECT_EQ(first->max_tokens, 6);
    EXPECT_EQ(num_words(first->messages[0].content), 520);
    EXPECT_EQ(second->at, std::chrono::seconds(2));
    EXPECT_EQ(num_words(second->messages[0].content), 600);
    EXPECT_EQ(num_words(third->messages[0].content), 4);
    std::size_t end = 0;
    for (int word = 0; word < 512; ++word) end = first->messages[0].content.find(' ', end + 1);
    EXPECT_EQ(first->messages[0].content.substr(0, end),
              second->messages[0].content.substr(0, end));
    EXPECT_NE(first->messages[0].content.substr(0, end + 40),
              second->messages[0].content.substr(0, end + 40));
    EXPECT_FALSE((*workload)->next());
}

TEST(Trace, RefusesWhatIsNoneWithTheLine) {
    const auto message = [](std::string_view text) {
        const auto trace = read_trace(text);
        return trace ? std::string() : trace.error().message;
    };
    EXPECT_NE(message(""), "");
    EXPECT_NE(message("{}").find("line 1: timestamp"), std::string::npos);
    EXPECT_NE(message("\n[1]").find("line 2: timestamp"), std::string::npos);
    EXPECT_NE(message("nonsense").find("line 1: "), std::string::npos);
    const std::string begin = "{\"timestamp\": 1, \"output_length\": 1, \"input_length\": ";
    EXPECT_NE(message(begin + "0}").find("input_length"), std::string::npos);
    EXPECT_NE(message(begin + "1e30}").find("input_length"), std::string::npos);
    EXPECT_NE(message(begin + "\"1\"}").find("input_length"), std::string::npos);
    EXPECT_NE(message(begin + "1, \"hash_ids\": 3}").find("hash_ids"), std::string::npos);
    EXPECT_NE(message(begin + "1, \"hash_ids\": [-1]}").find("hash_ids"), std::string::npos);
    EXPECT_EQ(message(begin + "1, \"hash_ids\": [1]}"), "");
}

}  // namespace
}  // namespace pagoda::loadgen
