#include "loadgen/load.h"

#include <algorithm>
#include <condition_variable>

#include <gtest/gtest.h>

#include "base/json.h"
#include "loadgen/scripted_server_for_test.h"

namespace pagoda::loadgen {
namespace {

using test::ScriptedServer;
using test::streamed;
using test::with_head;

class Load : public testing::Test {
  protected:
    static LoadResult run(const std::string& url, const Arrivals& arrivals, Workload& workload,
                          const OnProgress& on_progress = nullptr) {
        return run_load({.url = url, .model = "m", .api_key = "secret"}, arrivals, workload,
                        base::system_clock(), on_progress);
    }
    static Sample one(const std::string& url) {
        const auto workload = prompts({.prompt_tokens = 3}, 1);
        LoadResult result = run(url, {.num_requests = 1, .num_clients = 1}, *workload);
        EXPECT_EQ(result.samples.size(), 1U);
        return result.samples.empty() ? Sample{.error = "none"} : result.samples.front();
    }

  private:
    CurlSession curl_;
};

TEST_F(Load, SampleHasWhatTheServerSaid) {
    std::string request;
    const ScriptedServer server([&](const std::string& text) {
        request = text;
        return streamed(5);
    });
    const Sample sample = one(server.url() + "/v1/");
    EXPECT_EQ(sample.error, "");
    EXPECT_EQ(sample.status, 200);
    EXPECT_EQ(sample.num_prompt_tokens, 9);
    EXPECT_EQ(sample.num_cached_tokens, 3);
    EXPECT_EQ(sample.num_output_tokens, 5);
    EXPECT_EQ(sample.gaps.size(), 4U);
    EXPECT_LE(sample.arrived_at, sample.sent_at);
    EXPECT_LE(sample.sent_at, *sample.first_token_at);
    EXPECT_LE(*sample.first_token_at, sample.ended_at);
    EXPECT_TRUE(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n")) << request;
    EXPECT_NE(request.find("Authorization: Bearer secret\r\n"), std::string::npos) << request;
    const auto body = base::Json::parse(request.substr(request.find("\r\n\r\n") + 4));
    ASSERT_TRUE(body);
    EXPECT_EQ(*body->find("stream"), base::Json(true));
    EXPECT_EQ(*body->find("model"), base::Json("m"));
    EXPECT_EQ(*body->find("ignore_eos"), base::Json(true));
}

TEST_F(Load, EveryFaultEndsInASampleThatSaysIt) {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {with_head(503, R"({"error":{"message":"queue is full"}})"), "status 503: queue is full"},
        {with_head(404, "nothing here"), "status 404: nothing here"},
        {with_head(200, "data: {\"choices\":[{\"text\":\"a\"}]}\n\n"), "no stream with an end"},
        {with_head(200, "data: [DONE]\n\n"), "no text"},
        {with_head(200, "data: {\n\n"), "no JSON"},
        {with_head(200, "data: {\"error\":{\"message\":\"lost\"}}\n\ndata: [DONE]\n\n"), "lost"},
        {with_head(200, R"({"choices":[{"message":{"content":"x"}}]})"), "no stream with an end"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\ndata: [DONE]\n\n", "partial file"},
        {"nonsense", ""},
    };
    for (const auto& [bytes, expected] : cases) {
        const ScriptedServer server([&bytes = bytes](const std::string&) { return bytes; });
        const Sample sample = one(server.url());
        EXPECT_FALSE(sample.ok()) << bytes;
        EXPECT_NE(sample.error.find(expected), std::string::npos)
            << sample.error << "\nfor " << bytes;
    }
    std::string gone;
    {
        const ScriptedServer server([](const std::string&) { return std::string(); });
        gone = server.url();
    }
    EXPECT_FALSE(one(gone).ok());
}

TEST_F(Load, AClosedLoopHasOneRequestOfEachClient) {
    std::mutex mutex;
    int here = 0;
    int most = 0;
    int num_asked = 0;
    std::condition_variable changed;
    const ScriptedServer server([&](const std::string&) {
        std::unique_lock lock(mutex);
        ++here;
        ++num_asked;
        most = std::max(most, here);
        changed.notify_all();
        changed.wait(lock, [&] { return num_asked >= 3; });
        --here;
        return streamed(2);
    });
    const auto workload = prompts({.prompt_tokens = 3}, 1);
    const LoadResult result = run(server.url(), {.num_requests = 10, .num_clients = 3}, *workload);
    EXPECT_EQ(result.samples.size(), 10U);
    EXPECT_EQ(num_asked, 10);
    EXPECT_EQ(most, 3);
    for (const Sample& sample : result.samples) EXPECT_EQ(sample.error, "");
}

TEST_F(Load, WhatWaitsForItsBatchHasWaited) {
    const ScriptedServer server([](const std::string&) { return streamed(2); });
    const auto workload = prompts({.prompt_tokens = 3}, 1);
    const LoadResult result =
        run(server.url(), {.num_requests = 6, .num_clients = 4, .static_batch = 2}, *workload);
    ASSERT_EQ(result.samples.size(), 6U);
    for (std::size_t first = 2; first < 6; ++first) {
        for (std::size_t before = 0; before < first / 2 * 2; ++before)
            EXPECT_GE(result.samples[first].sent_at, result.samples[before].ended_at);
    }
    // The first four came at once, and two of them waited.
    for (std::size_t i = 1; i < 4; ++i)
        EXPECT_EQ(result.samples[i].arrived_at, result.samples[0].arrived_at);
    EXPECT_GT(result.samples[2].time_to_first_token(),
              *result.samples[2].first_token_at - result.samples[2].sent_at);
}

TEST_F(Load, ArrivalsKeepTheirTimes) {
    const ScriptedServer server([](const std::string&) { return streamed(1); });
    const auto workload = read_trace(
        "{\"timestamp\": 1000, \"input_length\": 2, \"output_length\": 1}\n"
        "{\"timestamp\": 1060, \"input_length\": 2, \"output_length\": 1}\n");
    ASSERT_TRUE(workload);
    const LoadResult result = run(server.url(), {.speed = 2}, **workload);
    ASSERT_EQ(result.samples.size(), 2U);
    EXPECT_EQ(result.samples[1].arrived_at - result.samples[0].arrived_at,
              std::chrono::milliseconds(30));
    EXPECT_GE(result.samples[1].sent_at, result.samples[1].arrived_at);
}

TEST_F(Load, AnOpenLoopDoesNotWaitForAnswers) {
    std::mutex mutex;
    int num_asked = 0;
    std::condition_variable changed;
    const ScriptedServer server([&](const std::string&) {
        std::unique_lock lock(mutex);
        ++num_asked;
        changed.notify_all();
        changed.wait(lock, [&] { return num_asked == 5; });
        return streamed(1);
    });
    const auto workload = prompts({.prompt_tokens = 3}, 1);
    const LoadResult result = run(server.url(), {.num_requests = 5, .rate = 1000}, *workload);
    EXPECT_EQ(result.samples.size(), 5U);
}

TEST_F(Load, EndsWhenItIsToldSo) {
    std::mutex mutex;
    bool is_open = false;
    std::condition_variable changed;
    const ScriptedServer server([&](const std::string&) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return is_open; });
        return streamed(1);
    });
    const auto workload = prompts({.prompt_tokens = 3}, 1);
    const LoadResult result =
        run(server.url(), {.num_requests = 5, .num_clients = 2}, *workload,
            [](const LoadProgress& progress) { return progress.num_sent != 2; });
    EXPECT_EQ(result.samples.size(), 0U);
    EXPECT_EQ(result.num_left_out, 2);
    const std::lock_guard lock(mutex);
    is_open = true;
    changed.notify_all();
}

TEST_F(Load, FindsTheFirstModelOrSaysWhatCame) {
    const ScriptedServer good([](const std::string& request) {
        return with_head(request.starts_with("GET /v1/models ") ? 200 : 404,
                         R"({"data":[{"id":"a/b"},{"id":"c"}]})");
    });
    const auto model = first_model({.url = good.url()});
    ASSERT_TRUE(model) << model.error().message;
    EXPECT_EQ(*model, "a/b");
    const ScriptedServer bad([](const std::string&) { return with_head(401, "{}"); });
    const auto none = first_model({.url = bad.url()});
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().message.find("401"), std::string::npos);
}

}  // namespace
}  // namespace pagoda::loadgen
