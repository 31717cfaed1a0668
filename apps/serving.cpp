#include "serving.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/core.h>

#include "base/byte_size.h"
#include "base/clock.h"
#include "build_info.h"
#include "plan/memory_plan.h"

namespace pagoda::apps {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// What is written in an address line for that host.
std::string url_host(const std::string& host) {
    if (host == "0.0.0.0" || host == "::") return "localhost";
    return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

http::Filter loaded_filter(const std::atomic<api::ServingState>& state) {
    return [&state](http::Request&) -> std::optional<http::Response> {
        if (state.load() != api::ServingState::kLoading) return std::nullopt;
        return http::error_response({.status = 503,
                                     .message = "the model is still loading; try again",
                                     .code = "model_loading"});
    };
}

}  // namespace

Serving::Serving(ServerSettings settings, Filters filters)
    : settings_(std::move(settings)), logger_(settings_.log), answers_(logger_) {
    context_.state = &state_;
    router_.add_filter(std::move(filters.clients));
    router_.add_filter(loaded_filter(state_));
    router_.add_admin_filter(std::move(filters.admin));
    router_.add_admin_filter(loaded_filter(state_));
    api::add_routes(router_, context_);
}

Serving::~Serving() {
    watch_.reset();
    if (server_) server_->stop();
}

base::Status Serving::listen() {
    settings_.http.max_bodies_bytes = plan::kProcessShares.bodies_bytes;
    settings_.http.max_small_bodies_bytes = plan::kProcessShares.small_bodies_bytes;
    settings_.http.on_answered = [this] { stop_.notify(); };
    if (settings_.http.max_body_bytes > plan::kProcessShares.bodies_bytes)
        logger_.warning(fmt::format("max_body lets bodies take {}, the memory plan has {} for them",
                                    base::format_byte_size(settings_.http.max_body_bytes),
                                    base::format_byte_size(plan::kProcessShares.bodies_bytes)));
    auto watch = SignalWatch::start([this] { on_signal(); });
    if (!watch) return std::move(watch).error();
    watch_.emplace(std::move(watch).value());
    server_ = std::make_unique<http::Server>(settings_.http, router_, logger_);
    if (auto started = server_->start(); !started) return started;
    fmt::print(stderr, "port {} is bound; requests get 503 until the model is loaded\n",
               server_->port());
    return {};
}

void Serving::on_signal() {
    if (state_.load() != api::ServingState::kLoading) {
        stop_.add();
        return;
    }
    // Nothing can be cut short in a load, and nothing is lost with it.
    fmt::print(stderr, "\nstopped while the model was loading\n");
    std::_Exit(EXIT_SUCCESS);
}

base::Status Serving::load(const std::string& model_path, const ModelSettings& settings) {
    // Before the plan, which counts its buffers.
    std::unique_ptr<engine::StepLogFile> step_log;
    if (!settings_.step_log.empty()) {
        auto created = engine::StepLogFile::create(settings_.step_log, logger_);
        if (!created) return std::move(created).error();
        step_log = std::move(created).value();
        fmt::print(stderr, "step log: {} (it holds prompts)\n", settings_.step_log);
    }
    auto session = ModelSession::open(model_path, settings, logger_);
    if (!session) return std::move(session).error();
    session_ = std::move(session).value();
    fmt::print(stderr, "{}\n", session_->describe());
    if (settings_.model_names.empty()) settings_.model_names = {session_->default_name()};
    if (auto started = answers_.start(); !started) return started;
    auto started = session_->start(
        settings_.model_names.front(), [this] { stop_.notify(); }, std::move(step_log));
    if (!started) return started;
    fill_context(model_path);
    state_.store(api::ServingState::kReady);
    announce();
    return {};
}

// Member by member: while loading, routes look at the state, and only at that.
void Serving::fill_context(const std::string& model_path) {
    context_.engine = &session_->engine();
    context_.answers = &answers_;
    context_.tokenizer = &session_->tokenizer();
    context_.chat_template = session_->chat_template();
    context_.model_names = settings_.model_names;
    context_.model_root = model_path;
    context_.created = base::system_clock().unix_seconds();
    context_.defaults = session_->sampling_defaults();
    context_.trust_request_chat_template = settings_.trust_request_chat_template;
    context_.metrics = &session_->metrics();
    context_.clock = &base::system_clock();
    context_.version = version_json(session_->device().kernels->name);
}

void Serving::announce() const {
    const std::string address =
        fmt::format("http://{}:{}", url_host(settings_.http.host), server_->port());
    fmt::print("pagoda: serving {} at {}\n", settings_.model_names.front(), address);
    std::fflush(stdout);
    fmt::print(stderr,
               "listening on {}\n\n"
               "  curl -N {}/v1/chat/completions -H 'content-type: application/json' \\\n"
               "{}"
               "    -d '{{\"messages\": [{{\"role\": \"user\", \"content\": \"Hello!\"}}], "
               "\"stream\": true}}'\n\n"
               "Stop with Ctrl-C (running answers finish), twice to stop at once.\n",
               address, address,
               settings_.api_keys.empty() ? "" : "    -H \"authorization: Bearer $KEY\" \\\n");
}

void Serving::serve() {
    stop_.wait_for_first();
    drain();
    server_->stop();
}

// True when every answer is out and the sequences of clients that left have ended with their step;
// false when the time is over or another signal came first.
bool Serving::wait_until_answered(milliseconds at_most) {
    const engine::Engine& engine = session_->engine();
    return stop_.wait(
        [this, &engine] { return server_->num_pending() == 0 && engine.num_active() == 0; },
        steady_clock::now() + at_most);
}

// Not ready at once, no new requests, running ones finish until the grace time is over or a second
// signal comes.
void Serving::drain() {
    state_.store(api::ServingState::kDraining);
    engine::Engine& engine = session_->engine();
    engine.drain();
    fmt::print(
        stderr, "stopping: {} sequences are running and get up to {} s; again to stop at once\n",
        engine.num_active(), std::chrono::duration<double>(settings_.shutdown_grace).count());
    if (wait_until_answered(settings_.shutdown_grace)) return;
    fmt::print(stderr, "stopped with {} sequences unfinished\n", engine.num_active());
    // Their clients are told so, in the stream or by status.
    constexpr milliseconds kLastWords{2000};
    engine.abort_all();
    static_cast<void>(stop_.wait([this] { return server_->num_pending() == 0; },
                                 steady_clock::now() + kLastWords));
    // A step of a large model takes long, and nobody is left to wait for it.
    if (engine.num_active() > 0) std::_Exit(EXIT_SUCCESS);
}

}  // namespace pagoda::apps
