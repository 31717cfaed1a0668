#include "serve/api/generation.h"

#include <semaphore>
#include <string>

#include <gtest/gtest.h>

#include "serve/api/api_for_test.h"
#include "serve/api/routes.h"

namespace pagoda::api {
namespace {

using base::Json;
using test::Answer;
using test::Api;

const Json& choice_of(const Json& document, std::size_t index = 0) {
    return document.find("choices")->as_array().at(index);
}

std::string error_code(const Json& document) {
    return document.find("error")->find("code")->as_string();
}

// Text and finish of one choice of a chat's stream, a line for each chunk.
std::vector<std::string> chunks(const Answer& answer, int index = 0) {
    std::vector<std::string> lines;
    for (const Json& document : answer.events().documents) {
        if (document.find("choices")->as_array().empty()) continue;
        const Json& choice = choice_of(document);
        if (*choice.find("index") != Json(index)) continue;
        lines.push_back(choice.find("delta")->dump() + " " + choice.find("finish_reason")->dump());
    }
    return lines;
}

TEST(Generation, AStreamIsRoleDeltasFinishUsageDone) {
    Api api("ab");
    const auto answer = api.post(chat_completions,
                                 R"({"messages": [{"role": "user", "content": "x"}], "stream": true,
            "stream_options": {"include_usage": true}})");
    ASSERT_TRUE(answer->is_stream());
    EXPECT_EQ(chunks(*answer),
              (std::vector<std::string>{R"({"role":"assistant","content":""} null)",
                                        R"({"content":"a"} null)", R"({"content":"b"} null)",
                                        R"({} "stop")"}));
    const Answer::Events events = answer->events();
    EXPECT_TRUE(events.is_done);
    for (const Json& document : events.documents) {
        EXPECT_EQ(document.find("id")->as_string(), "chatcmpl-test");
        EXPECT_EQ(document.find("usage")->is_null(), &document != &events.documents.back());
    }
    const Json& last = events.documents.back();
    EXPECT_TRUE(last.find("choices")->as_array().empty());
    EXPECT_EQ(*last.find("usage")->find("completion_tokens"), Json(3));
}

TEST(Generation, TheRoleIsSentOnceThoughTheFirstTokensHaveNoText) {
    Api api("\xF0\x9F\x98\x80!");  // four tokens make the first character
    const auto answer =
        api.post(chat_completions,
                 R"({"messages": [{"role": "user", "content": "x"}], "stream": true, "n": 2})");
    for (const int index : {0, 1})
        EXPECT_EQ(chunks(*answer, index),
                  (std::vector<std::string>{R"({"role":"assistant","content":""} null)",
                                            "{\"content\":\"\U0001F600\"} null",
                                            R"({"content":"!"} null)", R"({} "stop")"}));
}

TEST(Generation, UsageComesInEveryChunkWhereThatIsAskedFor) {
    Api api("ab");
    const auto answer = api.post(completions, R"({"prompt": "x", "stream": true,
                         "stream_options": {"continuous_usage_stats": true}})");
    std::int64_t before = 0;
    for (const Json& document : answer->events().documents) {
        const std::int64_t now = document.find("usage")->find("completion_tokens")->as_int();
        EXPECT_LE(before, now);
        before = now;
    }
    EXPECT_EQ(before, 3);
}

TEST(Generation, PromptTokensCountOnceForAllChoices) {
    Api api("ab");
    const auto answer = api.post(completions, R"({"prompt": ["abc", "d"], "n": 3})");
    const Json body = answer->json();
    EXPECT_EQ(body.find("choices")->as_array().size(), 6U);
    EXPECT_EQ(*body.find("usage")->find("prompt_tokens"), Json(4 + 2));  // <s> each
    EXPECT_EQ(*body.find("usage")->find("completion_tokens"), Json(6 * 3));
}

TEST(Generation, WhatTheEngineRefusesIsAnsweredBeforeAnyStream) {
    Api api("ab");
    for (const char* field : {R"("temperature": 101)", R"("top_p": 0)", R"("stop": [""])",
                              R"("repetition_penalty": 1e5)", R"("presence_penalty": 3)",
                              R"("logit_bias": {"999": 1})", R"("min_tokens": 600)"}) {
        const auto answer =
            api.post(completions, std::string(R"({"prompt": "x", "stream": true, )") + field + "}");
        EXPECT_FALSE(answer->is_stream()) << field;
        EXPECT_EQ(answer->status(), 400) << field;
        const Json error = *answer->json().find("error");
        const std::string param = error.find("param")->as_string();
        EXPECT_NE(std::string_view(field).find(param), std::string::npos) << error.dump();
        EXPECT_NE(error.find("message")->as_string().find(param), std::string::npos);
    }
}

TEST(Generation, AnErrorEndsAStreamWithItselfAndNotWithDone) {
    Api api("ab");
    api.executor->fail_prompts_with('!');
    const auto stream = api.post(completions, R"({"prompt": ["x", "!"], "stream": true,
                                                  "add_special_tokens": false})");
    ASSERT_TRUE(stream->is_stream());
    const Answer::Events events = stream->events();
    EXPECT_FALSE(events.is_done);
    EXPECT_EQ(error_code(events.documents.back()), "internal_error");
    const auto whole =
        api.post(completions, R"({"prompt": ["x", "!"], "add_special_tokens": false})");
    EXPECT_EQ(whole->status(), 500);
    EXPECT_EQ(error_code(whole->json()), "internal_error");
    EXPECT_TRUE(api.engine->wait_idle(std::chrono::seconds(60)));
}

TEST(Generation, AReaderThatLeavesStopsTheWork) {
    Api api(std::string(400, 'a'));
    api.executor->hold_steps();
    const auto answer = api.begin(completions, R"({"prompt": "x", "n": 2, "stream": true})");
    EXPECT_EQ(api.engine->num_active(), 2);
    answer->disconnect();
    api.executor->release(2);  // the step under way, and one that may have been planned before
    EXPECT_TRUE(api.engine->wait_idle(std::chrono::seconds(60)));
}

TEST(Generation, PromptsThatTheQueueNeverTakesAreTheClientsError) {
    Api api("ab");
    const auto answer = api.post(completions, R"({"prompt": [[1], [2], [3], [4], [5], [6], [7]],
                                                  "n": 10})");
    EXPECT_EQ(answer->status(), 400);
    EXPECT_NE(answer->json().find("error")->find("message")->as_string().find("70 sequences"),
              std::string::npos);
    EXPECT_EQ(api.engine->num_active(), 0);
}

TEST(Generation, MoreScoresOfPromptsThanAnAnswerMayHoldAreRefusedWithBothNumbers) {
    Api api("ab");
    std::string prompt = "[1";
    for (int count = 1; count < 400; ++count) prompt += ",1";
    const std::string body = R"({"prompt": )" + prompt + R"(], "prompt_logprobs": 20, "n": )";
    EXPECT_EQ(api.post(completions, body + "4}")->status(), 200);
    const auto refused = api.post(completions, body + "32}");
    EXPECT_EQ(refused->status(), 400);
    const Json error = *refused->json().find("error");
    EXPECT_EQ(error.find("param")->as_string(), "prompt_logprobs");
    EXPECT_NE(error.find("message")->as_string().find("are 268800 "), std::string::npos);
}

// A stream without log-probabilities does not wait for an answer that has many.
TEST(Generation, WhatHasScoresIsWrittenOnAThreadOfItsOwn) {
    Api api("ab");
    std::binary_semaphore gate(0);
    api.answers.post([&gate] { gate.acquire(); });
    const auto scored = api.begin(completions, R"({"prompt": "x", "logprobs": 1})");
    EXPECT_EQ(api.post(completions, R"({"prompt": "x"})")->status(), 200);
    gate.release();
    scored->wait();
    EXPECT_EQ(scored->status(), 200);
}

TEST(Generation, AShutdownIsTold) {
    Api api(std::string(400, 'a'));
    api.executor->hold_steps();
    const auto whole = api.begin(completions, R"({"prompt": "x"})");
    const auto stream = api.begin(completions, R"({"prompt": "x", "stream": true})");
    api.engine->abort_all();
    api.executor->release_all();
    whole->wait();
    stream->wait();
    EXPECT_EQ(whole->status(), 503);
    EXPECT_EQ(error_code(stream->events().documents.back()), "server_overloaded");
}

TEST(Generation, PromptLogprobsOfAChatStandBesideItsChoicesAsInVllm) {
    Api api("ab");
    const std::string body =
        R"({"messages": [{"role": "user", "content": "x"}], "prompt_logprobs": 1, "n": 2)";
    const Json whole = api.post(chat_completions, body + "}")->json();
    const Json scored = *whole.find("prompt_logprobs");
    EXPECT_EQ(std::ssize(scored.as_array()), whole.find("usage")->find("prompt_tokens")->as_int());
    EXPECT_EQ(choice_of(whole).find("prompt_logprobs"), nullptr);
    const auto stream = api.post(chat_completions, body + R"(, "stream": true})");
    const Answer::Events events = stream->events();
    for (const Json& document : events.documents) {
        const Json* found = document.find("prompt_logprobs");
        ASSERT_EQ(found != nullptr, &document == &events.documents.front());
        if (found != nullptr) {
            EXPECT_EQ(*found, scored);
        }
    }
}

std::int64_t cached_tokens(const Json& usage) {
    return usage.find("prompt_tokens_details")->find("cached_tokens")->as_int();
}

TEST(Generation, UsageSaysWhatThePrefixCacheHadInStreamsAndWhole) {
    Api api("ab");
    const std::string prompt(200, 'x');
    const auto ask = [&](std::string_view more) {
        return api.post(completions, R"({"prompt": ")" + prompt + R"(", )" + std::string(more) +
                                         R"("max_tokens": 2})");
    };
    const auto whole = [&](std::string_view more) { return *ask(more)->json().find("usage"); };
    EXPECT_EQ(cached_tokens(whole("")), 0);
    // 201 tokens with <s>, one of which is always computed.
    EXPECT_EQ(cached_tokens(whole("")), 200);
    EXPECT_EQ(whole("").find("total_tokens")->as_int(), 203);
    const auto stream =
        ask(R"("stream": true, "stream_options": {"include_usage": true}, )")->events();
    EXPECT_EQ(stream.documents.back().find("usage")->dump(), whole("").dump());
    // Log-probabilities of the prompt are computed afresh.
    EXPECT_EQ(cached_tokens(whole(R"("prompt_logprobs": 0, )")), 0);
    EXPECT_EQ(cached_tokens(whole(R"("echo": true, "logprobs": 0, )")), 0);
}

TEST(Generation, ACacheSaltSharesWithItselfAlone) {
    Api api("ab");
    const auto cached = [&](const std::string& salt) {
        const auto answer =
            api.post(completions, R"({"prompt": ")" + std::string(100, 'x') +
                                      R"(", "max_tokens": 1, "cache_salt": ")" + salt + R"("})");
        return cached_tokens(*answer->json().find("usage"));
    };
    EXPECT_EQ(cached("a"), 0);
    EXPECT_EQ(cached("a"), 100);
    EXPECT_EQ(cached(""), 0);
    EXPECT_EQ(cached("b"), 0);
    const auto refused = api.post(
        completions, R"({"prompt": "x", "cache_salt": ")" + std::string(513, 's') + R"("})");
    EXPECT_EQ(refused->status(), 400);
    EXPECT_NE(refused->json().find("error")->find("message")->as_string().find("513"),
              std::string::npos);
}

TEST(Admin, AResetForgetsThePrefixes) {
    Api api("ab");
    const auto cached = [&] {
        const auto answer =
            api.post(completions, R"({"prompt": ")" + std::string(100, 'x') + R"("})");
        return cached_tokens(*answer->json().find("usage"));
    };
    EXPECT_EQ(cached(), 0);
    EXPECT_EQ(cached(), 100);
    EXPECT_EQ(api.post(reset_prefix_cache, "")->json().find("status")->as_string(), "ok");
    EXPECT_EQ(cached(), 0);
}

}  // namespace
}  // namespace pagoda::api
