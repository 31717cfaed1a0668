#pragma once
// The API with an engine that runs no model, for tests of the routes: bytes are tokens, and what
// the engine answers is a text that the test gives. Built and used by the test's thread.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "engine/engine.h"
#include "engine/scripted_executor_for_test.h"
#include "serve/api/api_context.h"
#include "serve/http/response_writer.h"

namespace pagoda::api::test {

// 256 byte tokens, whose ids are the bytes, then these; the model adds <s> to prompts.
inline constexpr base::TokenId kBegin = 256;  // <s>
inline constexpr base::TokenId kEnd = 257;    // </s>
[[nodiscard]] std::unique_ptr<text::Tokenizer> byte_tokenizer();

// Keeps an answer. Any thread may write, any may wait.
class Answer final : public http::ResponseWriter {
  public:
    void send(http::Response response) override;
    void begin_stream(http::Response head) override;
    void write(std::string data) override;
    void end() override;
    void on_disconnect(std::function<void()> callback) override;

    // For the end of the answer.
    void wait();
    // As a reader that goes away.
    void disconnect();

    // After wait().
    [[nodiscard]] int status() const { return response_.status; }
    [[nodiscard]] bool is_stream() const { return is_stream_; }
    [[nodiscard]] base::Json json() const;
    [[nodiscard]] std::string header(std::string_view name) const;
    // The documents of a stream, and whether [DONE] came last.
    struct Events {
        std::vector<base::Json> documents;
        bool is_done = false;
    };
    [[nodiscard]] Events events() const;

  private:
    std::mutex mutex_;  // guards all below until the end
    std::condition_variable changed_;
    http::Response response_;
    std::function<void()> disconnected_;
    bool is_stream_ = false;
    bool is_over_ = false;
};

class Api {
  public:
    // `answer`: the tokens of every output, after which it ends.
    explicit Api(std::vector<base::TokenId> answer);
    explicit Api(std::string_view answer);
    ~Api();

    using Route = void (*)(const ApiContext&, http::Request&&,
                           std::shared_ptr<http::ResponseWriter>);
    // The answer may not be there yet.
    [[nodiscard]] std::shared_ptr<Answer> begin(Route route, std::string_view body);
    [[nodiscard]] std::shared_ptr<Answer> post(Route route, std::string_view body);

    // Before a request.
    ApiContext context;
    base::FakeClock clock;
    std::unique_ptr<text::Tokenizer> tokenizer;
    std::unique_ptr<text::ChatTemplate> chat_template;
    base::MetricsRegistry metrics;
    base::Logger logger;
    engine::ScriptedExecutor* executor = nullptr;  // owner: the engine
    AnswerThread answers;
    std::unique_ptr<engine::Engine> engine;  // last: it uses everything above
};

}  // namespace pagoda::api::test
