#include "engine/engine.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "engine/scripted_executor_for_test.h"
#include "formats/checkpoint.h"
#include "sched/replay.h"

namespace pagoda::engine {
namespace {

using base::TokenId;

constexpr TokenId kEnd = 256;
constexpr int kVocab = 257;

// 256 byte tokens and an end token.
std::unique_ptr<text::Tokenizer> byte_tokenizer() {
    text::TokenizerSpec spec;
    spec.kind = text::TokenizerKind::kSentencePieceBpe;
    constexpr char kHex[] = "0123456789ABCDEF";
    for (int byte = 0; byte < 256; ++byte) {
        spec.tokens.push_back(std::string("<0x") + kHex[byte / 16] + kHex[byte % 16] + ">");
        spec.types.push_back(text::TokenType::kByte);
    }
    spec.tokens.push_back("<end>");
    spec.types.push_back(text::TokenType::kControl);
    spec.scores.assign(spec.tokens.size(), 0.0F);
    spec.eos = kEnd;
    spec.add_space_prefix = false;
    auto tokenizer = text::Tokenizer::create(std::move(spec));
    EXPECT_TRUE(tokenizer.ok()) << (tokenizer.ok() ? "" : tokenizer.error().message);
    return std::move(tokenizer).value();
}

// Collects events; any thread may wait for the last one.
class Collector final : public TokenSink {
  public:
    explicit Collector(int num_choices = 1) : texts(num_choices), finishes(num_choices) {}

    void on_event(TokenEvent&& event) noexcept override {
        const std::lock_guard lock(mutex_);
        const auto choice = static_cast<std::size_t>(event.choice);
        texts[choice] += event.text;
        tokens += event.tokens.size();
        if (event.error) error = event.error;
        if (event.finish) {
            EXPECT_FALSE(finishes[choice]) << "two last events";
            finishes[choice] = event.finish;
            usage = event.usage;
            stop_string = event.stop_string;
            ++num_finished_;
        } else {
            EXPECT_FALSE(finishes[choice]) << "an event after the last";
        }
        changed_.notify_all();
    }

    void wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return num_finished_ == finishes.size(); });
    }
    void wait_for_tokens(std::size_t count) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return tokens >= count; });
    }

    std::vector<std::string> texts;
    std::vector<std::optional<FinishReason>> finishes;
    std::size_t tokens = 0;
    std::optional<base::Error> error;
    std::optional<std::string> stop_string;
    Usage usage;

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t num_finished_ = 0;
};

// A prompt that begins with this ends at its second output token, whatever it was allowed.
constexpr TokenId kShort = 255;

// Counts upwards from the prompt's sum, in letters.
TokenId letters(const std::vector<TokenId>& tokens, std::int64_t num_prompt) {
    std::int64_t sum = 0;
    for (std::int64_t index = 0; index < num_prompt; ++index)
        sum += tokens[static_cast<std::size_t>(index)];
    return static_cast<TokenId>('a' + (sum + static_cast<std::int64_t>(tokens.size())) % 26);
}

TokenId letters_or_short(const std::vector<TokenId>& tokens, std::int64_t num_prompt) {
    const bool is_over = tokens.front() == kShort && std::ssize(tokens) > num_prompt;
    return is_over ? kEnd : letters(tokens, num_prompt);
}

struct EngineTest : testing::Test {
    void start(ScriptedExecutor::NextToken next, std::int64_t num_blocks = 64,
               std::int64_t max_queue = 1024,
               std::int64_t max_queue_bytes = std::int64_t{24} << 20) {
        const sched::SchedulerConfig config{.max_num_seqs = 16,
                                            .max_num_batched_tokens = 64,
                                            .max_queue = max_queue,
                                            .max_model_len = 512,
                                            .groups = {{.num_blocks = num_blocks}},
                                            .prefix_hasher = hasher};
        auto scripted = std::make_unique<ScriptedExecutor>(std::move(next), config);
        executor = scripted.get();
        auto started = Engine::start({.executor = std::move(scripted),
                                      .tokenizer = tokenizer.get(),
                                      .vocab_size = vocab,
                                      .scheduler = config,
                                      .max_queue_bytes = max_queue_bytes,
                                      .model_name = "fake",
                                      .metrics = &metrics,
                                      .logger = &logger,
                                      .clock = clock,
                                      .on_idle = [this] { idle_calls.fetch_add(1); },
                                      .step_log = std::move(step_log)});
        engine = std::move(started).value();
    }

    static GenerateRequest request(std::vector<TokenId> prompt, std::int64_t max_tokens,
                                   std::shared_ptr<TokenSink> sink) {
        GenerateRequest result{.prompt = std::move(prompt), .sink = std::move(sink)};
        result.sampling.max_tokens = max_tokens;
        return result;
    }

    // After these, long outputs surprise the scheduler.
    void run_short_requests() const {
        for (int number = 0; number < 40; ++number) {
            auto sink = std::make_shared<Collector>();
            ASSERT_TRUE(engine->submit(request({kShort}, 300, sink)).ok());
            sink->wait();
        }
    }

    // Five that go on for as long as they are let.
    std::vector<std::shared_ptr<Collector>> submit_long_requests() const {
        std::vector<std::shared_ptr<Collector>> sinks;
        for (int number = 0; number < 5; ++number) {
            sinks.push_back(std::make_shared<Collector>());
            EXPECT_TRUE(engine->submit(request({1}, 400, sinks.back())).ok());
        }
        return sinks;
    }

    // The value of a gauge or counter in the metrics page.
    double metric(const std::string& name) const {
        const std::string page = metrics.render();
        const std::size_t at = page.find("\n" + name + "{");
        if (at == std::string::npos) return -1;
        const std::size_t space = page.find(' ', at + 1);
        return std::stod(page.substr(space + 1));
    }

    // Usage of a request that has ended.
    Usage usage_of(GenerateRequest request) const {
        auto sink = std::make_shared<Collector>(request.num_choices);
        request.sink = sink;
        EXPECT_TRUE(engine->submit(std::move(request)).ok());
        sink->wait();
        return sink->usage;
    }

    std::shared_ptr<const kv::PrefixHasher> hasher;  // owners: the engine too; null: no cache
    std::unique_ptr<text::Tokenizer> tokenizer = byte_tokenizer();
    base::MetricsRegistry metrics;
    base::Logger logger{{.level = base::LogLevel::kError}};
    std::int64_t vocab = kVocab;
    const base::Clock* clock = &base::system_clock();
    ScriptedExecutor* executor = nullptr;
    std::atomic<int> idle_calls{0};
    std::unique_ptr<StepLogFile> step_log;  // of the engine that is started next
    std::unique_ptr<Engine> engine;
};

TEST_F(EngineTest, DeliversAllTokensAndOneLastEvent) {
    start(letters);
    auto sink = std::make_shared<Collector>();
    ASSERT_TRUE(engine->submit(request({10, 20}, 5, sink)).ok());
    sink->wait();
    EXPECT_EQ(sink->texts[0], "ghijk");
    EXPECT_EQ(sink->finishes[0], FinishReason::kLength);
    EXPECT_EQ(sink->usage.prompt_tokens, 2);
    EXPECT_EQ(sink->usage.completion_tokens, 5);
}

TEST_F(EngineTest, AnEndTokenStopsAndIsNoPartOfTheText) {
    start([](const auto& tokens, std::int64_t num_prompt) {
        return static_cast<std::int64_t>(tokens.size()) == num_prompt + 2 ? kEnd : TokenId{'x'};
    });
    auto sink = std::make_shared<Collector>();
    ASSERT_TRUE(engine->submit(request({1}, 50, sink)).ok());
    sink->wait();
    EXPECT_EQ(sink->texts[0], "xx");
    EXPECT_EQ(sink->finishes[0], FinishReason::kStop);
    EXPECT_EQ(sink->usage.completion_tokens, 3);
}

TEST_F(EngineTest, AnOutputWhoseFirstTokenEndsIsEmpty) {
    start([](const auto&, std::int64_t) { return kEnd; });
    auto sink = std::make_shared<Collector>(2);
    GenerateRequest two = request({1, 2, 3}, 50, sink);
    two.num_choices = 2;
    ASSERT_TRUE(engine->submit(two).ok());
    sink->wait();
    EXPECT_EQ(sink->texts, (std::vector<std::string>{"", ""}));
    EXPECT_EQ(sink->finishes[1], FinishReason::kStop);
}

TEST_F(EngineTest, AStopStringOverSeveralTokensIsNeverSent) {
    start(letters);
    auto sink = std::make_shared<Collector>();
    GenerateRequest stopped = request({10, 20}, 400, sink);
    stopped.stop = {"klm"};
    ASSERT_TRUE(engine->submit(stopped).ok());
    sink->wait();
    EXPECT_EQ(sink->texts[0], "ghij");
    EXPECT_EQ(sink->finishes[0], FinishReason::kStop);
    EXPECT_EQ(sink->stop_string, "klm");
    EXPECT_TRUE(engine->wait_idle(std::chrono::seconds(20)));
}

TEST_F(EngineTest, AStopStringDoesNotEndTheFirstMinTokens) {
    start(letters);  // one letter a token: g h i j k l m ...
    const auto answer = [&](const std::string& stop, std::int64_t min_tokens) {
        auto sink = std::make_shared<Collector>();
        GenerateRequest stopped = request({10, 20}, 35, sink);
        stopped.stop = {stop};
        stopped.sampling.min_tokens = min_tokens;
        EXPECT_TRUE(engine->submit(stopped).ok());
        sink->wait();
        return sink->texts[0] + (sink->stop_string ? "." : "");
    };
    EXPECT_EQ(answer("klm", 6), "ghij.");  // token 7 ends it
    EXPECT_EQ(answer("klm", 7), "ghijklmnopqrstuvwxyzabcdefghij.");
    EXPECT_EQ(answer("klm", 33), "ghijklmnopqrstuvwxyzabcdefghijklmno");
}

TEST_F(EngineTest, CharactersThatSpanTokensArriveWhole) {
    const std::string text = "a\xF0\x9F\x98\x80z";  // an emoji, one byte a token
    start([&](const auto& tokens, std::int64_t num_prompt) {
        return static_cast<TokenId>(
            static_cast<unsigned char>(text[tokens.size() - static_cast<std::size_t>(num_prompt)]));
    });
    auto sink = std::make_shared<Collector>();
    ASSERT_TRUE(engine->submit(request({1}, 6, sink)).ok());
    sink->wait();
    EXPECT_EQ(sink->texts[0], text);
}

TEST_F(EngineTest, AnUnfinishedCharacterIsFlushedOnceAtTheEnd) {
    start([](const auto& tokens, std::int64_t num_prompt) {
        return static_cast<std::int64_t>(tokens.size()) == num_prompt ? TokenId{'a'}
                                                                      : TokenId{0xF0};
    });
    auto sink = std::make_shared<Collector>();
    ASSERT_TRUE(engine->submit(request({1}, 2, sink)).ok());
    sink->wait();
    EXPECT_EQ(sink->texts[0], "a\xEF\xBF\xBD");
}

TEST_F(EngineTest, AFaultInsideOneRequestFailsItAlone) {
    start(letters);
    executor->fail_prompts_with(200);
    auto good = std::make_shared<Collector>();
    auto bad = std::make_shared<Collector>();
    ASSERT_TRUE(engine->submit(request({10, 20}, 30, good)).ok());
    ASSERT_TRUE(engine->submit(request({200}, 30, bad)).ok());
    good->wait();
    bad->wait();
    EXPECT_TRUE(bad->error.has_value());
    EXPECT_EQ(bad->finishes[0], FinishReason::kError);
    EXPECT_EQ(good->texts[0].size(), 30U);
    EXPECT_FALSE(good->error.has_value());
}

TEST_F(EngineTest, WhatCanNeverRunIsRefusedAtOnce) {
    start(letters, /*num_blocks=*/4);
    auto sink = std::make_shared<Collector>();
    EXPECT_EQ(engine->submit(request({}, 5, sink)).error().param, "prompt");
    EXPECT_EQ(engine->submit(request({kVocab}, 5, sink)).error().param, "prompt");
    EXPECT_FALSE(engine->submit(request({-1}, 5, sink)).ok());
    EXPECT_FALSE(engine->submit(request({1}, 512, sink)).ok());
    EXPECT_FALSE(engine->submit(request({1}, 0, sink)).ok());
    EXPECT_FALSE(engine->submit(request({1}, 200, sink)).ok()) << "four blocks hold 128 tokens";
    EXPECT_EQ(engine->num_active(), 0);
}

TEST_F(EngineTest, AFullQueueRefusesWithoutForgettingAnyone) {
    start(letters, 64, /*max_queue=*/3);
    executor->hold_steps();
    std::vector<std::shared_ptr<Collector>> sinks;
    int refused = 0;
    for (int number = 0; number < 30; ++number) {
        auto sink = std::make_shared<Collector>();
        auto taken = engine->submit(request({1, 2}, 4, sink));
        if (taken.ok())
            sinks.push_back(sink);
        else if (taken.error().code == base::ErrorCode::kUnavailable)
            ++refused;
    }
    EXPECT_GE(refused, 20);
    executor->release_all();
    for (const auto& sink : sinks) sink->wait();
    EXPECT_TRUE(engine->wait_idle(std::chrono::seconds(20)));
    auto later = std::make_shared<Collector>();
    ASSERT_TRUE(engine->submit(request({1, 2}, 4, later)).ok());
    later->wait();
}

TEST_F(EngineTest, ManyRequestsGetTheAnswersTheyGetAlone) {
    start(letters_or_short, /*num_blocks=*/20);
    std::mt19937 random(7);
    std::vector<std::vector<TokenId>> prompts;
    for (int number = 0; number < 64; ++number) {
        std::vector<TokenId> prompt(1 + random() % 90);
        for (TokenId& token : prompt) token = static_cast<TokenId>(random() % 255);
        prompts.push_back(std::move(prompt));
    }
    run_short_requests();
    executor->hold_steps();
    std::vector<std::shared_ptr<Collector>> sinks;
    for (const auto& prompt : prompts) {
        sinks.push_back(std::make_shared<Collector>());
        ASSERT_TRUE(engine->submit(request(prompt, 120, sinks.back())).ok());
    }
    executor->release_all();
    for (const auto& sink : sinks) sink->wait();
    EXPECT_GT(executor->num_preempted(), 0);
    for (std::size_t number = 0; number < prompts.size(); ++number) {
        auto alone = std::make_shared<Collector>();
        ASSERT_TRUE(engine->submit(request(prompts[number], 120, alone)).ok());
        alone->wait();
        EXPECT_EQ(sinks[number]->texts[0], alone->texts[0]);
    }
}

struct PrefixCacheTest : EngineTest {
    PrefixCacheTest() {
        hasher = std::make_shared<const kv::PrefixHasher>(base::HashKey({}));
        start(letters);
    }
    static GenerateRequest long_prompt(std::uint64_t client = 1, std::string salt = "") {
        GenerateRequest result = request(std::vector<TokenId>(120, 7), 3, nullptr);
        result.client = base::ClientId(client);
        result.cache_salt = std::move(salt);
        return result;
    }
};

TEST_F(PrefixCacheTest, UsageAndMetricsSayWhatWasFoundAndAgree) {
    EXPECT_EQ(usage_of(long_prompt()).cached_tokens, 0);
    GenerateRequest three = long_prompt();
    three.num_choices = 3;
    for (int round = 0; round < 2; ++round) {
        const Usage usage = usage_of(round == 0 ? long_prompt() : three);
        EXPECT_EQ(usage.prompt_tokens, 120);
        EXPECT_EQ(usage.cached_tokens, 119);
        EXPECT_EQ(usage.completion_tokens, 3);
    }
    EXPECT_EQ(metric("vllm:prompt_tokens_total"), 360);
    EXPECT_EQ(metric("vllm:prefix_cache_queries_total"), 360);
    EXPECT_EQ(metric("vllm:prefix_cache_hits_total"), 238);
    ASSERT_TRUE(engine->wait_idle(std::chrono::seconds(20)));
    EXPECT_GT(metric("pagoda:kv_blocks_cached"), 0);
    EXPECT_NE(metrics.render().find("enable_prefix_caching=\"True\""), std::string::npos);
}

TEST_F(PrefixCacheTest, ClientsAndSaltsShareNothing) {
    for (const std::uint64_t client : {1U, 2U}) {
        for (const char* salt : {"", "a", "b"}) {
            EXPECT_EQ(usage_of(long_prompt(client, salt)).cached_tokens, 0);
            EXPECT_EQ(usage_of(long_prompt(client, salt)).cached_tokens, 119);
        }
    }
}

TEST_F(PrefixCacheTest, AResetForgetsWhatWasComputedBefore) {
    EXPECT_EQ(usage_of(long_prompt()).cached_tokens, 0);
    engine->reset_prefix_cache();
    EXPECT_EQ(usage_of(long_prompt()).cached_tokens, 0);
    EXPECT_EQ(usage_of(long_prompt()).cached_tokens, 119);
}

TEST_F(PrefixCacheTest, WhoAsksForThePromptsLogprobsLooksNothingUp) {
    EXPECT_EQ(usage_of(long_prompt()).cached_tokens, 0);
    GenerateRequest scored = long_prompt();
    scored.sampling.prompt_logprobs = 0;
    EXPECT_EQ(usage_of(scored).cached_tokens, 0);
    EXPECT_EQ(metric("vllm:prefix_cache_queries_total"), 120);
    EXPECT_EQ(metric("vllm:prompt_tokens_total"), 240);
}

TEST_F(PrefixCacheTest, WithoutOneNothingIsFound) {
    engine.reset();
    hasher = nullptr;
    start(letters);
    EXPECT_EQ(usage_of(long_prompt()).cached_tokens, 0);
    EXPECT_EQ(usage_of(long_prompt()).cached_tokens, 0);
}

TEST_F(EngineTest, WhatWasAcceptedIsNotRefusedLaterBesidePreemptedOnes) {
    start(letters_or_short, /*num_blocks=*/16, /*max_queue=*/2);
    executor->hold_after_preemption();
    run_short_requests();
    std::vector<std::shared_ptr<Collector>> sinks;
    const auto submit = [&](std::size_t num_prompt, std::int64_t max_tokens) {
        auto sink = std::make_shared<Collector>();
        const bool is_taken =
            engine->submit(request(std::vector<TokenId>(num_prompt, 1), max_tokens, sink)).ok();
        if (is_taken) sinks.push_back(sink);
        return is_taken;
    };
    // One request, so that both begin in one step and neither ends before the blocks do.
    auto pair = std::make_shared<Collector>(2);
    GenerateRequest two = request(std::vector<TokenId>(100, 1), 400, pair);
    two.num_choices = 2;
    ASSERT_TRUE(engine->submit(two).ok());
    executor->wait_for_preemption();
    EXPECT_TRUE(submit(4, 4));
    EXPECT_TRUE(submit(4, 4));
    EXPECT_FALSE(submit(4, 4));
    executor->release_all();
    pair->wait();
    EXPECT_FALSE(pair->error) << pair->error->message;
    for (const auto& sink : sinks) {
        sink->wait();
        EXPECT_FALSE(sink->error) << sink->error->message;
        EXPECT_EQ(sink->finishes[0], FinishReason::kLength);
    }
}

TEST_F(EngineTest, MoreChoicesThanTheQueueTakesAreTheClientsErrorAndNameBothNumbers) {
    start(letters, 64, /*max_queue=*/3);
    auto sink = std::make_shared<Collector>(4);
    GenerateRequest four = request({1}, 5, sink);
    four.num_choices = 4;
    const auto refused = engine->submit(four);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, base::ErrorCode::kInvalidArgument);
    EXPECT_EQ(refused.error().param, "n");
    EXPECT_NE(refused.error().message.find("n is 4, the queue takes 3"), std::string::npos);
}

TEST_F(EngineTest, RequestsOfOneCallerAreTakenTogetherOrNotAtAll) {
    start(letters, 64, /*max_queue=*/5);
    executor->hold_steps();
    const auto several = [](std::size_t count, const std::shared_ptr<Collector>& sink) {
        std::vector<GenerateRequest> requests(count, request({10, 20}, 5, sink));
        for (GenerateRequest& one : requests) one.num_choices = 2;
        return requests;
    };
    auto sink = std::make_shared<Collector>(2);
    const auto never = engine->submit(several(3, sink));
    ASSERT_FALSE(never.ok());
    EXPECT_EQ(never.error().code, base::ErrorCode::kInvalidArgument);
    EXPECT_NE(never.error().message.find("3 prompts make 6 sequences"), std::string::npos);
    ASSERT_TRUE(engine->submit(several(1, sink)).ok());
    auto other = std::make_shared<Collector>(2);
    ASSERT_TRUE(engine->submit(several(1, other)).ok());
    EXPECT_EQ(engine->submit(several(2, sink)).error().code, base::ErrorCode::kUnavailable);
    EXPECT_EQ(engine->num_active(), 4) << "of what was refused nothing is left";
    executor->release_all();
    sink->wait();
    other->wait();
    EXPECT_EQ(other->texts[0], "ghijk");
}

TEST_F(EngineTest, APriorityThatThePolicyDoesNotKnowIsRefusedByName) {
    start(letters);
    auto sink = std::make_shared<Collector>();
    GenerateRequest urgent = request({1}, 5, sink);
    urgent.priority = -5;
    const auto refused = engine->submit(urgent);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().param, "priority");
    EXPECT_NE(refused.error().message.find("schedules by fair"), std::string::npos);
}

TEST_F(EngineTest, StopStringsAndASinkAreCheckedBeforeAnythingRuns) {
    start(letters);
    auto sink = std::make_shared<Collector>();
    GenerateRequest stopped = request({1}, 5, sink);
    stopped.stop = {"a", ""};
    EXPECT_EQ(engine->submit(stopped).error().param, "stop");
    stopped.stop.assign(5, std::string(4000, 'a'));
    EXPECT_NE(engine->submit(stopped).error().message.find("16384"), std::string::npos);
    EXPECT_FALSE(engine->submit(request({1}, 5, nullptr)).ok());
    GenerateRequest nothing_left = request({1}, 5, sink);
    nothing_left.sampling.min_tokens = 1;
    for (TokenId token = 0; token < kEnd; ++token)
        nothing_left.sampling.stop_token_ids.push_back(token);
    EXPECT_EQ(engine->submit(nothing_left).error().param, "stop_token_ids");
    EXPECT_EQ(engine->num_active(), 0);
}

TEST_F(EngineTest, APromptAloneHasNoOutputAndCountsNone) {
    start(letters);
    auto sink = std::make_shared<Collector>();
    GenerateRequest prompt = request({10, 20}, 1, sink);
    prompt.is_prompt_only = true;
    prompt.stop = {"g"};  // what would come out
    ASSERT_TRUE(engine->submit(prompt).ok());
    sink->wait();
    EXPECT_EQ(sink->texts[0], "");
    EXPECT_EQ(sink->tokens, 0U);
    EXPECT_EQ(sink->finishes[0], FinishReason::kLength);
    EXPECT_FALSE(sink->stop_string);
    EXPECT_EQ(sink->usage.completion_tokens, 0);
    EXPECT_EQ(metric("vllm:prompt_tokens_total"), 2);
    EXPECT_EQ(metric("vllm:generation_tokens_total"), 0);
    prompt.sampling.max_tokens = 2;
    EXPECT_EQ(engine->submit(prompt).error().param, "max_tokens");
}

TEST_F(EngineTest, AContinuedTextKeepsItsSpace) {
    const char* const golden = std::getenv("PAGODA_GOLDEN");
    ASSERT_NE(golden, nullptr) << "PAGODA_GOLDEN must name tests/golden";
    const auto checkpoint =
        formats::open_checkpoint(std::string(golden) + "/gguf/mistral-full.gguf");
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message;
    tokenizer = text::Tokenizer::create(*checkpoint->tokenizer).value();
    const std::vector<TokenId> hello = tokenizer->encode("hello", {}).value();
    const TokenId the = tokenizer->encode("hello the", {}).value().back();
    ASSERT_EQ(tokenizer->token_bytes(the, true), " the");
    vocab = tokenizer->vocab_size();
    start([&](const auto&, std::int64_t) { return the; });
    const auto answer = [&](const std::vector<TokenId>& prompt) {
        auto sink = std::make_shared<Collector>();
        EXPECT_TRUE(engine->submit(request(prompt, 2, sink)).ok());
        sink->wait();
        return sink->texts[0];
    };
    EXPECT_EQ(answer(hello), " the the");
    EXPECT_EQ(answer({*tokenizer->spec().bos}), "the the");
}

TEST_F(EngineTest, ThreeHundredRandomCancelsLeaveNoBlockInUse) {
    start(letters, 40);
    std::mt19937 random(11);
    std::vector<std::shared_ptr<Collector>> sinks;
    for (int number = 0; number < 300; ++number) {
        sinks.push_back(std::make_shared<Collector>());
        auto id = engine->submit(
            request(std::vector<TokenId>(1 + random() % 100, 5), 1 + random() % 200, sinks.back()));
        ASSERT_TRUE(id.ok());
        if (random() % 3 == 0) sinks.back()->wait_for_tokens(1);
        engine->cancel(*id);
    }
    for (const auto& sink : sinks) sink->wait();
    EXPECT_TRUE(engine->wait_idle(std::chrono::seconds(60)));
    // One more request makes one more step, after which the gauges are fresh.
    auto last = std::make_shared<Collector>();
    ASSERT_TRUE(engine->submit(request({1}, 1, last)).ok());
    last->wait();
    ASSERT_TRUE(engine->wait_idle(std::chrono::seconds(60)));
    EXPECT_EQ(metric("pagoda:kv_blocks_used"), 0);
    EXPECT_EQ(metric("vllm:num_requests_running"), 0);
    EXPECT_EQ(metric("vllm:num_requests_waiting"), 0);
}

TEST_F(EngineTest, DrainingRefusesNewRequestsAndFinishesOld) {
    start(letters);
    executor->hold_steps();
    auto running = std::make_shared<Collector>();
    ASSERT_TRUE(engine->submit(request({10, 20}, 5, running)).ok());
    engine->drain();
    auto late = std::make_shared<Collector>();
    EXPECT_EQ(engine->submit(request({1}, 5, late)).error().code, base::ErrorCode::kUnavailable);
    EXPECT_FALSE(engine->wait_idle(std::chrono::milliseconds(1)));
    EXPECT_EQ(idle_calls.load(), 0);
    executor->release_all();
    running->wait();
    EXPECT_EQ(running->texts[0], "ghijk");
    EXPECT_TRUE(engine->wait_idle(std::chrono::seconds(20)));
    engine.reset();  // whoever waits may be woken before the call is made
    EXPECT_EQ(idle_calls.load(), 1);
}

TEST_F(EngineTest, AbortingEndsEveryRequestAndTakesNewOnes) {
    start(letters);
    executor->hold_steps();
    const auto sinks = submit_long_requests();
    engine->abort_all();
    executor->release_all();
    for (const auto& sink : sinks) {
        sink->wait();
        EXPECT_EQ(sink->finishes[0], FinishReason::kAborted);
    }
    EXPECT_TRUE(engine->wait_idle(std::chrono::seconds(20)));
    auto later = std::make_shared<Collector>();
    ASSERT_TRUE(engine->submit(request({10, 20}, 5, later)).ok());
    later->wait();
    EXPECT_EQ(later->texts[0], "ghijk");
}

TEST_F(EngineTest, DestructionAbortsWhatRuns) {
    start(letters);
    executor->hold_steps();
    const auto sinks = submit_long_requests();
    // The step under way ends when the engine takes no requests any more, not before.
    std::thread releaser([this, stopping = engine.get()] {
        const auto is_stopping = [&] {
            // Each of its own sink: those that are taken before the stop end by themselves.
            const auto taken =
                stopping->submit(request({kShort}, 2, std::make_shared<Collector>()));
            return !taken && taken.error().message.find("shutting down") != std::string::npos;
        };
        while (!is_stopping()) std::this_thread::yield();
        executor->release_all();
    });
    engine.reset();
    releaser.join();
    for (const auto& sink : sinks) {
        sink->wait();
        EXPECT_EQ(sink->finishes[0], FinishReason::kAborted);
    }
}

TEST_F(EngineTest, MetricsAddUpWithTheUsage) {
    start(letters);
    std::int64_t prompt = 0;
    std::int64_t completion = 0;
    for (int number = 1; number <= 5; ++number) {
        auto sink = std::make_shared<Collector>();
        ASSERT_TRUE(
            engine
                ->submit(request(std::vector<TokenId>(static_cast<std::size_t>(number) * 7, 3),
                                 number * 4, sink))
                .ok());
        sink->wait();
        prompt += sink->usage.prompt_tokens;
        completion += sink->usage.completion_tokens;
    }
    // A prompt counts once, however many choices go on from it, in both.
    auto twice = std::make_shared<Collector>(2);
    GenerateRequest two = request({1, 2, 3}, 4, twice);
    two.num_choices = 2;
    ASSERT_TRUE(engine->submit(two).ok());
    twice->wait();
    prompt += twice->usage.prompt_tokens;
    completion += static_cast<std::int64_t>(twice->tokens);
    EXPECT_EQ(metric("vllm:prompt_tokens_total"), static_cast<double>(prompt));
    EXPECT_EQ(metric("vllm:generation_tokens_total"), static_cast<double>(completion));
}

// Plans of the log against those that a scheduler makes of its events; the number of steps.
int replay_log(const std::string& path) {
    std::ifstream stream(path);
    std::string line;
    EXPECT_TRUE(std::getline(stream, line));
    const auto config = sched::parse_header_line(line);
    EXPECT_TRUE(config.ok()) << line;
    sched::Replay replay(*config, base::system_clock());
    while (std::getline(stream, line)) {
        const auto event = sched::parse_event_line(line, *config);
        EXPECT_TRUE(event.ok()) << line;
        const auto applied = replay.apply(*event);
        EXPECT_TRUE(applied.ok()) << line;
        EXPECT_FALSE(applied->has_value()) << line;
        if (testing::Test::HasFailure()) break;
    }
    EXPECT_FALSE(replay.stats().num_running > 0);
    return static_cast<int>(replay.plan_times().size());
}

TEST_F(EngineTest, TheStepLogOfWhateverHappensIsReplayed) {
    const std::string path = testing::TempDir() + "engine_step_log." + std::to_string(::getpid());
    for (const bool is_cached : {true, false}) {
        hasher =
            is_cached ? std::make_shared<const kv::PrefixHasher>(base::HashKey::random()) : nullptr;
        step_log = StepLogFile::create(path, logger).value();
        start(letters_or_short, 24);
        executor->fail_prompts_with(TokenId{99});
        run_short_requests();
        auto stopped = request({10, 20}, 100, nullptr);
        stopped.stop = {"klm"};
        stopped.num_choices = 2;
        static_cast<void>(usage_of(stopped));
        static_cast<void>(usage_of(request({99}, 5, nullptr)));
        engine->reset_prefix_cache();
        const auto sinks = submit_long_requests();
        auto sink = std::make_shared<Collector>();
        const auto id = engine->submit(request({2}, 400, sink));
        sink->wait_for_tokens(3);
        engine->cancel(*id);
        for (const auto& one : sinks) one->wait();
        engine.reset();
        EXPECT_GT(replay_log(path), 100);
    }
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace pagoda::engine
