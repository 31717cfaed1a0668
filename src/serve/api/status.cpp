// /health, /ready, /version and /metrics: answered without the engine's thread.

#include <fmt/core.h>

#include "serve/api/request_body.h"
#include "serve/api/routes.h"

namespace pagoda::api {
namespace {

http::Response status_json(std::string_view status) {
    base::Json json = base::Json::object();
    json.set("status", status);
    return http::json_response(json);
}

}  // namespace

// The process lives, and its engine is not stuck in a step. There is no engine while it loads.
void health(const ApiContext& context, http::Request&&, Writer writer) {
    if (context.state->load() == ServingState::kLoading) return writer->send(status_json("ok"));
    const double stuck = context.engine->seconds_in_step();
    if (stuck <= context.watchdog_seconds) return writer->send(status_json("ok"));
    writer->send(http::error_response(
        {.status = 503,
         .message = fmt::format("the engine's step takes {:.0f} s already", stuck),
         .code = "engine_stuck"}));
}

void ready(const ApiContext& context, http::Request&&, Writer writer) {
    const ServingState state = context.state->load();
    if (state == ServingState::kReady) return writer->send(status_json("ready"));
    writer->send(http::error_response({.status = 503,
                                       .message = state == ServingState::kLoading
                                                      ? "the model is still loading"
                                                      : "the server is shutting down",
                                       .code = "not_ready"}));
}

void version(const ApiContext& context, http::Request&&, Writer writer) {
    writer->send(http::json_response(context.version));
}

void metrics(const ApiContext& context, http::Request&&, Writer writer) {
    writer->send({.content_type = "text/plain; version=0.0.4; charset=utf-8",
                  .body = context.metrics->render()});
}

}  // namespace pagoda::api
