#include "serve/http/router.h"

#include <string_view>

#include <fmt/core.h>

namespace pagoda::http {
namespace {

bool path_matches(std::string_view pattern, std::string_view path) {
    if (!pattern.ends_with("/*")) return pattern == path;
    const std::string_view stem = pattern.substr(0, pattern.size() - 1);
    return path.size() > stem.size() && path.starts_with(stem);
}

bool method_matches(const std::string& route, const std::string& method) {
    return route == method || (route == "GET" && method == "HEAD");
}

}  // namespace

void Router::dispatch(Request&& request, std::shared_ptr<ResponseWriter> writer) const {
    std::string allowed;
    const Route* found = nullptr;
    for (const Route& route : routes_) {
        if (!path_matches(route.path, request.path)) continue;
        if (method_matches(route.method, request.method)) found = &route;
        allowed += (allowed.empty() ? "" : ", ") + route.method;
    }
    if (found == nullptr || !found->is_public) {
        for (const Filter& filter : filters_) {
            if (std::optional<Response> refused = filter(request)) {
                writer->send(std::move(*refused));
                return;
            }
        }
    }
    if (found != nullptr) {
        found->handler(std::move(request), std::move(writer));
        return;
    }
    if (allowed.empty()) {
        writer->send(error_response(
            {.status = 404,
             .message = fmt::format("there is no route {} {}", request.method, request.path),
             .code = "not_found"}));
        return;
    }
    Response response =
        error_response({.status = 405,
                        .message = fmt::format("{} does not take {}; it takes {}", request.path,
                                               request.method, allowed),
                        .code = "method_not_allowed"});
    response.headers.emplace_back("Allow", allowed);
    writer->send(std::move(response));
}

}  // namespace pagoda::http
