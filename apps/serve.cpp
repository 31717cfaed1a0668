// pagoda serve: the HTTP server.

#include <cstdio>
#include <filesystem>

#include <fmt/core.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/queue.h"
#include "build_info.h"
#include "commands.h"
#include "model_config.h"
#include "model_session.h"
#include "serve/api/api_context.h"
#include "serve/gateway/api_keys.h"
#include "serve/http/server.h"
#include "signal_watch.h"

namespace pagoda::apps {
namespace {

using std::chrono::milliseconds;

// What is written in an address line for that host.
std::string url_host(const std::string& host) {
    if (host == "0.0.0.0" || host == "::") return "localhost";
    return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

base::Status check_exposure(const ServerSettings& settings) {
    if (!settings.api_keys.empty() && settings.allow_unauthenticated)
        return base::invalid(
            "allow_unauthenticated is set and so are API keys, with which every request needs "
            "one; leave one of the two out",
            "allow_unauthenticated");
    if (!settings.api_keys.empty() || settings.allow_unauthenticated ||
        is_loopback(settings.http.host))
        return {};
    return base::invalid(
        fmt::format("host {} can be reached from other machines and no API key is set; give "
                    "api_keys or api_key_file, or --allow-unauthenticated if all of them may "
                    "use this server",
                    settings.http.host),
        "host");
}

base::Result<http::Filter> make_filter(const ServerSettings& settings) {
    if (settings.api_keys.empty()) return gateway::address_filter();
    auto keys = gateway::ApiKeys::create(settings.api_keys);
    if (!keys) return std::move(keys).error();
    // Owned by the filter alone once this returns; a filter must be copyable.
    return gateway::key_filter(std::make_shared<gateway::ApiKeys>(std::move(keys).value()));
}

void announce(const ServerSettings& settings, std::uint16_t port, const std::string& model) {
    const std::string address = fmt::format("http://{}:{}", url_host(settings.http.host), port);
    fmt::print("pagoda: serving {} at {}\n", model, address);
    std::fflush(stdout);
    fmt::print(stderr,
               "listening on {}\n\n"
               "  curl -N {}/v1/chat/completions -H 'content-type: application/json' \\\n"
               "{}"
               "    -d '{{\"messages\": [{{\"role\": \"user\", \"content\": \"Hello!\"}}], "
               "\"stream\": true}}'\n\n"
               "Stop with Ctrl-C (running answers finish), twice to stop at once.\n",
               address, address,
               settings.api_keys.empty() ? "" : "    -H \"authorization: Bearer $KEY\" \\\n");
}

// What serving consists of. Destroyed backwards: the server first, so that no handler outlives
// what it works with.
struct Serving {
    ServerSettings settings;
    base::Logger logger;
    std::unique_ptr<ModelSession> session;
    std::atomic<bool> is_ready{false};
    api::ApiContext context;
    http::Router router;
    std::unique_ptr<http::Server> server;

    explicit Serving(ServerSettings from) : settings(std::move(from)), logger(settings.log) {}
};

void fill_context(Serving& serving, const std::string& model_path) {
    ModelSession& session = *serving.session;
    serving.context = {.engine = &session.engine(),
                       .tokenizer = &session.tokenizer(),
                       .chat_template = session.chat_template(),
                       .model_names = serving.settings.model_names,
                       .model_root = model_path,
                       .created = base::system_clock().unix_seconds(),
                       .defaults = session.sampling_defaults(),
                       .trust_request_chat_template = serving.settings.trust_request_chat_template,
                       .metrics = &session.metrics(),
                       .clock = &base::system_clock(),
                       .ready = &serving.is_ready,
                       .version = version_json(session.device().kernels->name)};
}

// True when every answer is out; false when the time is over or a signal came first.
bool wait_until_answered(Serving& serving, milliseconds at_most,
                         base::BlockingQueue<int>* signals) {
    constexpr milliseconds kSlice{20};
    const auto until = std::chrono::steady_clock::now() + at_most;
    while (std::chrono::steady_clock::now() < until) {
        const bool is_idle = serving.session->engine().wait_idle(kSlice);
        if (is_idle && serving.server->num_pending() == 0) return true;
        // The last bytes of answers are on their way; nothing tells when they are out.
        if (is_idle) std::this_thread::sleep_for(kSlice);
        if (signals != nullptr && signals->try_pop()) return false;
    }
    return false;
}

// Not ready at once, no new requests, running ones finish until the grace time is over or a second
// signal comes.
void drain(Serving& serving, base::BlockingQueue<int>& signals) {
    serving.is_ready.store(false);
    engine::Engine& engine = serving.session->engine();
    engine.drain();
    fmt::print(stderr,
               "stopping: {} sequences are running and get up to {} s; again to stop at once\n",
               engine.num_active(),
               std::chrono::duration<double>(serving.settings.shutdown_grace).count());
    if (wait_until_answered(serving, serving.settings.shutdown_grace, &signals)) return;
    fmt::print(stderr, "stopped with {} sequences unfinished\n", engine.num_active());
    // Their clients are told so, in the stream or by status.
    constexpr milliseconds kLastWords{2000};
    engine.abort_all();
    static_cast<void>(wait_until_answered(serving, kLastWords, nullptr));
}

ExitCode serve_until_signal(Serving& serving) {
    base::BlockingQueue<int> signals;
    const SignalWatch watch([&signals] { static_cast<void>(signals.try_push(1)); });
    serving.server =
        std::make_unique<http::Server>(serving.settings.http, serving.router, serving.logger);
    if (const auto status = serving.server->start(); !status) return fail(status.error());
    serving.is_ready.store(true);
    announce(serving.settings, serving.server->port(), serving.settings.model_names.front());
    static_cast<void>(signals.pop());
    drain(serving, signals);
    serving.server->stop();
    return ExitCode::kSuccess;
}

ExitCode serve(const Arguments& arguments) {
    const auto config = load_config(arguments);
    if (!config) return bad_usage(config.error());
    if (arguments.has("print-config")) {
        fmt::print("{}", config->to_yaml());
        return ExitCode::kSuccess;
    }
    const auto model = arguments.positional("MODEL");
    if (!model) return bad_usage(base::invalid("serve needs a MODEL; see pagoda serve --help"));
    const auto model_part = model_settings(*config);
    if (!model_part) return bad_usage(model_part.error());
    auto server_part = server_settings(*config);
    if (!server_part) return bad_usage(server_part.error());
    if (const auto safe = check_exposure(*server_part); !safe) return bad_usage(safe.error());
    auto filter = make_filter(*server_part);
    if (!filter) return bad_usage(filter.error());

    Serving serving(std::move(server_part).value());
    auto session = ModelSession::open(*model, *model_part, serving.logger);
    if (!session) return fail(session.error());
    serving.session = std::move(session).value();
    fmt::print(stderr, "{}\n", serving.session->describe());
    if (serving.settings.model_names.empty())
        serving.settings.model_names = {serving.session->default_name()};
    if (const auto status = serving.session->start(serving.settings.model_names.front()); !status)
        return fail(status.error());
    fill_context(serving, *model);
    serving.router.add_filter(std::move(filter).value());
    api::add_routes(serving.router, serving.context);
    return serve_until_signal(serving);
}

}  // namespace

CommandSpec serve_command() {
    return {.name = "serve",
            .summary = "Serve a model over HTTP, in the shapes of OpenAI's API",
            .positionals = {{"MODEL", kModel.help, false}},
            .options = {kConfigOption, kPrintConfigOption},
            .config_uses = kUsesServer,
            .examples =
                "  pagoda serve model.gguf\n"
                "  pagoda serve model.gguf --port 9000 --max-num-seqs 16\n"
                "  pagoda serve model.gguf --host 0.0.0.0 --api-key-file keys.txt\n"
                "  PAGODA_THREADS=4 pagoda serve model.gguf --config pagoda.yaml\n"
                "  pagoda serve --config pagoda.yaml --print-config",
            .run = serve};
}

}  // namespace pagoda::apps
