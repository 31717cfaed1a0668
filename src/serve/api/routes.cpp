#include "serve/api/routes.h"

#include <array>
#include <utility>

namespace pagoda::api {
namespace {

struct Entry {
    const char* method;
    const char* path;
    void (*handler)(const ApiContext&, http::Request&&, Writer);
    bool is_public = false;  // needs no key
};

constexpr std::array<Entry, 11> kRoutes = {{
    {"POST", "/v1/chat/completions", chat_completions},
    {"POST", "/v1/completions", completions},
    {"GET", "/v1/models", list_models},
    {"GET", "/v1/models/*", show_model},
    {"POST", "/tokenize", tokenize},
    {"POST", "/detokenize", detokenize},
    {"POST", "/apply-template", apply_template},
    {"GET", "/health", health, true},
    {"GET", "/ready", ready, true},
    {"GET", "/version", version},
    {"GET", "/metrics", metrics},
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
                    .is_public = entry.is_public});
    }
}

}  // namespace pagoda::api
