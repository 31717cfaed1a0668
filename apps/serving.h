#pragma once
// Serving: a model behind an HTTP server, from the bound port to the last answer. listen(), load()
// and serve() come in that order from one thread, which also destroys it.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "model_session.h"
#include "serve/api/api_context.h"
#include "serve/http/server.h"
#include "settings.h"
#include "signal_watch.h"
#include "stop_requests.h"

namespace pagoda::apps {

class Serving {
  public:
    // They decide who may ask, and who may ask the operator's routes.
    struct Filters {
        http::Filter clients, admin;
    };
    Serving(ServerSettings settings, Filters filters);
    ~Serving();
    Serving(const Serving&) = delete;
    Serving& operator=(const Serving&) = delete;

    // Binds the port, so that one in use is found before minutes of loading. From now on /health
    // answers 200 and everything else 503, and a signal to stop ends the process at once.
    [[nodiscard]] base::Status listen();
    // Prints the plan, loads and is ready.
    [[nodiscard]] base::Status load(const std::string& model_path, const ModelSettings& settings);
    // Until a signal to stop: then running answers get the grace time, or end at the next signal.
    void serve();

  private:
    void on_signal();
    void fill_context(const std::string& model_path);
    void announce() const;
    [[nodiscard]] bool wait_until_answered(std::chrono::milliseconds at_most);
    void drain();

    ServerSettings settings_;
    base::Logger logger_;
    StopRequests stop_;
    std::atomic<api::ServingState> state_{api::ServingState::kLoading};
    api::ApiContext context_;
    http::Router router_;
    // Stopped before and destroyed behind the session, whose last sequences may still write to it,
    // as the answers' thread is.
    std::unique_ptr<http::Server> server_;
    api::AnswerThread answers_;
    std::unique_ptr<ModelSession> session_;
    std::optional<SignalWatch> watch_;  // last: it uses everything above
};

}  // namespace pagoda::apps
