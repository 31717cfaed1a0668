#include "serve/api/api_for_test.h"

#include <utility>

#include "base/check.h"
#include "text/vocabulary_for_test.h"

namespace pagoda::api::test {
namespace {

using base::TokenId;

constexpr std::string_view kTemplate =
    "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}";

std::vector<TokenId> bytes_of(std::string_view text) {
    std::vector<TokenId> tokens;
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
}

}  // namespace

std::unique_ptr<text::Tokenizer> byte_tokenizer() {
    text::TokenizerSpec spec = text::test::byte_level_spec({});
    spec.bos = text::test::add_token(spec, "<s>", text::TokenType::kControl);
    spec.eos = text::test::add_token(spec, "</s>", text::TokenType::kControl);
    spec.add_bos = true;
    CHECK(spec.bos == kBegin && spec.eos == kEnd, "another vocabulary");
    return text::Tokenizer::create(std::move(spec)).value();
}

void Answer::send(http::Response response) {
    const std::lock_guard lock(mutex_);
    CHECK(!is_over_ && !is_stream_, "a second answer");
    response_ = std::move(response);
    is_over_ = true;
    changed_.notify_all();
}

void Answer::begin_stream(http::Response head) {
    const std::lock_guard lock(mutex_);
    CHECK(!is_over_ && !is_stream_, "a second answer");
    is_stream_ = true;
    response_ = std::move(head);
}

void Answer::write(std::string data) {
    const std::lock_guard lock(mutex_);
    CHECK(is_stream_ && !is_over_, "events outside of a stream");
    response_.body += data;
}

void Answer::end() {
    const std::lock_guard lock(mutex_);
    CHECK(is_stream_ && !is_over_, "the end of no stream");
    is_over_ = true;
    changed_.notify_all();
}

void Answer::on_disconnect(std::function<void()> callback) {
    const std::lock_guard lock(mutex_);
    disconnected_ = std::move(callback);
}

void Answer::wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_over_; });
}

void Answer::disconnect() {
    std::unique_lock lock(mutex_);
    const std::function<void()> callback = disconnected_;
    lock.unlock();
    callback();
}

base::Json Answer::json() const {
    return base::Json::parse(response_.body).value();
}

std::string Answer::header(std::string_view name) const {
    for (const auto& [key, value] : response_.headers) {
        if (http::equals_ignoring_case(key, name)) return value;
    }
    return "";
}

Answer::Events Answer::events() const {
    constexpr std::string_view kData = "data: ";
    Events events;
    std::string_view rest = response_.body;
    while (!rest.empty()) {
        const std::size_t end = rest.find("\n\n");
        CHECK(end != rest.npos && rest.starts_with(kData) && !events.is_done, response_.body);
        const std::string_view data = rest.substr(kData.size(), end - kData.size());
        rest.remove_prefix(end + 2);
        events.is_done = data == "[DONE]";
        if (!events.is_done) events.documents.push_back(base::Json::parse(data).value());
    }
    return events;
}

Api::Api(std::string_view answer) : Api(bytes_of(answer)) {}

Api::Api(std::vector<TokenId> answer)
    : tokenizer(byte_tokenizer()),
      chat_template(text::ChatTemplate::compile(kTemplate).value()),
      logger({.level = base::LogLevel::kError}),
      answers(logger) {
    CHECK(answers.start().ok(), "no thread");
    const sched::SchedulerConfig config{
        .max_num_seqs = 16,
        .max_num_batched_tokens = 256,
        .max_queue = 64,
        .max_model_len = 512,
        .groups = {{.num_blocks = 512}},
        .prefix_hasher = std::make_shared<const kv::PrefixHasher>(base::HashKey({}))};
    const auto next = [answer = std::move(answer)](const std::vector<TokenId>& tokens,
                                                   std::int64_t num_prompt) {
        const auto place = static_cast<std::size_t>(std::ssize(tokens) - num_prompt);
        return place < answer.size() ? answer[place] : kEnd;
    };
    auto scripted = std::make_unique<engine::ScriptedExecutor>(next, config);
    executor = scripted.get();
    engine = engine::Engine::start({.executor = std::move(scripted),
                                    .tokenizer = tokenizer.get(),
                                    .vocab_size = tokenizer->vocab_size(),
                                    .scheduler = config,
                                    .model_name = "bytes",
                                    .metrics = &metrics,
                                    .logger = &logger,
                                    .clock = &clock})
                 .value();
    context.engine = engine.get();
    context.answers = &answers;
    context.tokenizer = tokenizer.get();
    context.chat_template = chat_template.get();
    context.model_names = {"bytes"};
    context.metrics = &metrics;
    context.clock = &clock;
}

Api::~Api() = default;

std::shared_ptr<Answer> Api::begin(Route route, std::string_view body) {
    auto answer = std::make_shared<Answer>();
    route(context, {.body = std::string(body), .id = "test"}, answer);
    return answer;
}

std::shared_ptr<Answer> Api::post(Route route, std::string_view body) {
    auto answer = begin(route, body);
    answer->wait();
    return answer;
}

}  // namespace pagoda::api::test
