// Any bytes as the body of a request to each route that reads one, with an engine behind them that
// runs no model: every request gets exactly one answer, whole or as a stream, that is valid JSON or
// valid events; a refusal is the client's fault or a full queue and says why; nothing stays behind.
// The first byte chooses the route: '0' to '4'.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/engine.h"
#include "serve/api/api_context.h"
#include "serve/http/router.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "text/vocabulary_for_test.h"

namespace {

using namespace pagoda;
using base::Json;
using std::chrono::seconds;

constexpr std::string_view kPaths[] = {"/v1/chat/completions", "/v1/completions", "/tokenize",
                                       "/detokenize", "/apply-template"};
constexpr std::string_view kTemplate =
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}";
constexpr seconds kPatience{8};

// Letters, and the end token after some; log-probabilities where they are asked for.
class LetterExecutor final : public engine::Executor {
  public:
    explicit LetterExecutor(base::TokenId end) : end_(end) {}

    engine::StepOutput run(const sched::StepPlan& plan,
                           std::span<engine::NewSequence> new_sequences) override {
        for (const base::SeqId seq : plan.ended) sequences_.erase(seq);
        for (engine::NewSequence& incoming : new_sequences)
            sequences_[incoming.seq].source = std::move(incoming);
        engine::StepOutput output;
        output.result.step = plan.step;
        for (const sched::SequencePlan& part : plan.sequences) {
            output.details.emplace_back();
            output.result.sequences.push_back(step(part, output.details.back()));
        }
        return output;
    }

  private:
    struct Sequence {
        engine::NewSequence source;
        std::int64_t num_output = 0;
    };

    static decode::TokenLogprob scored(base::TokenId token, int num_alternatives) {
        decode::TokenLogprob entry{.token = token, .logprob = -0.5F};
        for (int place = 0; place < num_alternatives; ++place)
            entry.top.push_back({.token = token + place, .logprob = -0.5F});
        return entry;
    }

    sched::SequenceResult step(const sched::SequencePlan& part, engine::SequenceDetails& details) {
        Sequence& sequence = sequences_.at(part.seq);
        const engine::SequenceInput& input = *sequence.source.input;
        if (input.sampling.prompt_logprobs && sequence.source.is_prompt_scored) {
            const std::int64_t end =
                std::min(part.first_position + part.num_tokens, std::ssize(input.prompt) - 1);
            for (std::int64_t position = part.first_position; position < end; ++position)
                details.prompt_logprobs.push_back(
                    scored(input.prompt[static_cast<std::size_t>(position + 1)],
                           *input.sampling.prompt_logprobs));
        }
        sched::SequenceResult result{.seq = part.seq};
        if (!part.is_sampled) return result;
        constexpr std::int64_t kLetters = 12;
        const base::TokenId token =
            sequence.num_output == kLetters
                ? end_
                : static_cast<base::TokenId>('a' + sequence.num_output % 26);
        result.tokens = {token};
        if (input.sampling.logprobs)
            details.logprobs.push_back(scored(token, *input.sampling.logprobs));
        using Verdict = decode::StopRules::Verdict;
        const Verdict verdict = input.stop.check(token, ++sequence.num_output);
        if (verdict == Verdict::kStop) result.finish = sched::FinishReason::kStop;
        if (verdict == Verdict::kLength) result.finish = sched::FinishReason::kLength;
        return result;
    }

    const base::TokenId end_;
    std::unordered_map<base::SeqId, Sequence> sequences_;
};

// The answer to one request; whoever waits for it gives up in the end.
class Recorder final : public http::ResponseWriter {
  public:
    void send(http::Response response) override {
        const std::lock_guard lock(mutex_);
        CHECK(!is_over_ && !is_stream_, "a second answer");
        response_ = std::move(response);
        finish();
    }
    void begin_stream(http::Response head) override {
        const std::lock_guard lock(mutex_);
        CHECK(!is_over_ && !is_stream_, "a second answer");
        is_stream_ = true;
        response_ = std::move(head);
    }
    void write(std::string data) override {
        const std::lock_guard lock(mutex_);
        CHECK(is_stream_ && !is_over_, "events outside of a stream");
        response_.body += data;
    }
    void end() override {
        const std::lock_guard lock(mutex_);
        CHECK(is_stream_ && !is_over_, "the end of no stream");
        finish();
    }
    void on_disconnect(std::function<void()>) override {}

    void wait() {
        std::unique_lock lock(mutex_);
        CHECK(changed_.wait_for(lock, kPatience, [this] { return is_over_; }), "no answer came");
    }
    // After wait().
    [[nodiscard]] const http::Response& response() const { return response_; }
    [[nodiscard]] bool is_stream() const { return is_stream_; }

  private:
    void finish() {
        is_over_ = true;
        changed_.notify_all();
    }

    std::mutex mutex_;  // guards all below
    std::condition_variable changed_;
    http::Response response_;
    bool is_stream_ = false;
    bool is_over_ = false;
};

Json parsed(std::string_view text) {
    auto json = Json::parse(text);
    CHECK(json.ok(), "an answer that is no JSON: " + json.error().message);
    return std::move(json).value();
}

void check_refusal(const Json& body) {
    const Json* error = body.find("error");
    CHECK(error != nullptr, "a refusal without an error");
    const Json* message = error->find("message");
    CHECK(message != nullptr && message->is_string() && !message->as_string().empty(),
          "a refusal without a message");
}

// Every event is "data: JSON", the last "data: [DONE]" unless it is an error.
void check_events(std::string_view body) {
    constexpr std::string_view kData = "data: ";
    bool is_over = false;
    while (!body.empty()) {
        CHECK(!is_over, "an event after the last");
        const std::size_t end = body.find("\n\n");
        CHECK(end != body.npos && body.starts_with(kData), "an event that is none");
        const std::string_view data = body.substr(kData.size(), end - kData.size());
        body.remove_prefix(end + 2);
        is_over = data == "[DONE]";
        if (is_over) continue;
        const Json event = parsed(data);
        is_over = event.find("error") != nullptr;
        if (is_over) check_refusal(event);
    }
    CHECK(is_over, "a stream without an end");
}

void check_answer(const Recorder& recorder) {
    const http::Response& response = recorder.response();
    for (const auto& [name, value] : response.headers)
        CHECK(value.find_first_of("\r\n") == value.npos, "a header of two lines: " + name);
    if (recorder.is_stream()) {
        CHECK(response.status == 200, "a stream of another status");
        check_events(response.body);
        return;
    }
    const Json body = parsed(response.body);
    if (response.status == 200) return;
    CHECK((response.status >= 400 && response.status < 500) || response.status == 503,
          "a fault of the server: " + response.body);
    check_refusal(body);
}

class Service {
  public:
    Service() {
        text::TokenizerSpec spec = text::test::byte_level_spec({"a a", "e s", "\u0120 a"});
        spec.eos = text::test::add_token(spec, "<|im_end|>", text::TokenType::kControl);
        tokenizer_ = text::Tokenizer::create(spec).value();
        template_ = text::ChatTemplate::compile(kTemplate).value();
        const sched::SchedulerConfig config{.max_num_batched_tokens = 256,
                                            .max_queue = 256,
                                            .max_model_len = 128,
                                            .groups = {{.num_blocks = 4096}}};
        engine_ = engine::Engine::start({.executor = std::make_unique<LetterExecutor>(*spec.eos),
                                         .tokenizer = tokenizer_.get(),
                                         .vocab_size = tokenizer_->vocab_size(),
                                         .scheduler = config,
                                         .model_name = "letters",
                                         .metrics = &metrics_,
                                         .logger = &logger_,
                                         .clock = &base::system_clock()})
                      .value();
        CHECK(answers_.start().ok(), "no thread for answers");
        context_ = {.engine = engine_.get(),
                    .answers = &answers_,
                    .tokenizer = tokenizer_.get(),
                    .chat_template = template_.get(),
                    .model_names = {"letters"},
                    .metrics = &metrics_,
                    .clock = &base::system_clock()};
        api::add_routes(router_, context_);
    }

    void ask(std::string_view path, std::string body) {
        const auto recorder = std::make_shared<Recorder>();
        http::Request request{.method = "POST",
                              .path = std::string(path),
                              .headers = {{"Content-Type", "application/json"}},
                              .body = std::move(body),
                              .id = "fuzz"};
        const http::Routing routing = router_.admit(request);
        CHECK(!routing.refusal, "the fuzzer's paths are routes");
        routing.route->handler(std::move(request), recorder);
        recorder->wait();
        check_answer(*recorder);
        CHECK(engine_->wait_idle(kPatience), "a sequence runs on after its answer");
    }

  private:
    base::MetricsRegistry metrics_;
    base::Logger logger_{{.level = base::LogLevel::kError}};
    std::unique_ptr<text::Tokenizer> tokenizer_;
    std::unique_ptr<text::ChatTemplate> template_;
    api::AnswerThread answers_{logger_};
    std::unique_ptr<engine::Engine> engine_;
    api::ApiContext context_;
    http::Router router_;
};

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Service service;
    if (size == 0) return 0;
    const std::size_t route = static_cast<std::uint8_t>(data[0] - '0') % std::size(kPaths);
    service.ask(kPaths[route], std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
    return 0;
}
