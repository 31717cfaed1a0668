#pragma once
// ServerState: what the connections of a server share. Outlives them all; any thread. Internal to
// the server.

#include <atomic>
#include <cstddef>

#include "base/log.h"
#include "serve/http/body_budget.h"
#include "serve/http/handler_pool.h"
#include "serve/http/request_ids.h"
#include "serve/http/server.h"

namespace pagoda::http {

struct ServerState {
    const ServerOptions& options;
    const Router& router;
    base::Logger& logger;
    HandlerPool& pool;
    // Of requests with large bodies, which may take seconds: they hold up each other alone.
    HandlerPool& large_pool;
    BodyBudget& bodies;
    RequestIds ids{};
    std::atomic<std::size_t> num_pending{0};
    std::atomic<std::size_t> num_connections{0};
    std::atomic<bool> is_stopping{false};

    void begin_answer() { num_pending.fetch_add(1); }
    void end_answer() {
        if (num_pending.fetch_sub(1) == 1 && options.on_answered) options.on_answered();
    }
};

}  // namespace pagoda::http
