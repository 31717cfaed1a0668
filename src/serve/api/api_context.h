#pragma once
// ApiContext: what the routes work with. Built by main() while the state is kLoading, constant
// afterwards; everything it points to outlives the server's threads. Thread-safe to read.

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/metrics.h"
#include "engine/engine.h"
#include "serve/api/answer_thread.h"
#include "serve/http/router.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace pagoda::api {

// What a request gets that says nothing: the model's generation settings, or OpenAI's.
struct SamplingDefaults {
    double temperature = 1.0;
    double top_p = 1.0;
    std::int64_t top_k = 0;
    double min_p = 0.0;
    double repetition_penalty = 1.0;
};

enum class ServingState { kLoading, kReady, kDraining };

struct ApiContext {
    engine::Engine* engine = nullptr;
    AnswerThread* answers = nullptr;
    const text::Tokenizer* tokenizer = nullptr;
    const text::ChatTemplate* chat_template = nullptr;  // null: the model has none
    std::vector<std::string> model_names;               // at least one; the first is reported
    std::string model_root;                             // the path as given
    std::int64_t created = 0;                           // unix seconds
    SamplingDefaults defaults;
    bool trust_request_chat_template = false;
    base::MetricsRegistry* metrics = nullptr;
    const base::Clock* clock = nullptr;
    // While loading it alone may be read.
    const std::atomic<ServingState>* state = nullptr;
    double watchdog_seconds = 300;  // a step longer than this is a stuck engine
    base::Json version;             // body of /version
};

// Adds every route of this module.
void add_routes(http::Router& router, const ApiContext& context);

}  // namespace pagoda::api
