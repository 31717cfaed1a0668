#include "serve/api/routes.h"

#include <array>
#include <utility>

namespace pagoda::api {
namespace {

// kLookup: takes microseconds and needs no thread of the handlers' pool.
enum class Work { kRequest, kLookup };
// kMonitor: asked all the time by machines, so not worth a line of the log each.
enum class Asker { kClient, kMonitor };

struct Entry {
    const char* method;
    const char* path;
    void (*handler)(const ApiContext&, http::Request&&, Writer);
    Work work = Work::kRequest;
    Asker asker = Asker::kClient;
    http::Access access = http::Access::kClients;
};

constexpr std::array<Entry, 12> kRoutes = {{
    {"POST", "/v1/chat/completions", chat_completions},
    {"POST", "/v1/completions", completions},
    {"GET", "/v1/models", list_models, Work::kLookup},
    {"GET", "/v1/models/*", show_model, Work::kLookup},
    {"POST", "/tokenize", tokenize},
    {"POST", "/detokenize", detokenize},
    {"POST", "/apply-template", apply_template},
    {"GET", "/health", health, Work::kLookup, Asker::kMonitor, http::Access::kPublic},
    {"GET", "/ready", ready, Work::kLookup, Asker::kMonitor, http::Access::kPublic},
    {"GET", "/version", version, Work::kLookup},
    {"GET", "/metrics", metrics, Work::kLookup, Asker::kMonitor},
    {"POST", "/admin/reset_prefix_cache", reset_prefix_cache, Work::kLookup, Asker::kClient,
     http::Access::kAdmin},
}};

}  // namespace

void add_routes(http::Router& router, const ApiContext& context) {
    for (const Entry& entry : kRoutes) {
        router.add({.method = entry.method,
                    .path = entry.path,
                    .handler =
                        [&context, handler = entry.handler](
                            http::Request&& request, std::shared_ptr<http::ResponseWriter> writer) {
                            handler(context, std::move(request), std::move(writer));
                        },
                    .access = entry.access,
                    .is_immediate = entry.work == Work::kLookup,
                    .is_quiet = entry.asker == Asker::kMonitor});
    }
}

}  // namespace pagoda::api
