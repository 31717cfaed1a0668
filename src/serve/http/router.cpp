#include "serve/http/router.h"

#include <string_view>
#include <utility>

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

Response no_such_route(const Request& head) {
    return error_response(
        {.status = 404,
         .message = fmt::format("there is no route {} {}", head.method, head.path),
         .code = "not_found"});
}

Response wrong_method(const Request& head, const std::string& allowed) {
    Response response = error_response({.status = 405,
                                        .message = fmt::format("{} does not take {}; it takes {}",
                                                               head.path, head.method, allowed),
                                        .code = "method_not_allowed"});
    response.headers.emplace_back("Allow", allowed);
    return response;
}

}  // namespace

Routing Router::admit(Request& head) const {
    std::string allowed;
    Routing result;
    for (const Route& route : routes_) {
        if (!path_matches(route.path, head.path)) continue;
        if (method_matches(route.method, head.method)) result.route = &route;
        allowed += (allowed.empty() ? "" : ", ") + route.method;
        if (route.method == "GET") allowed += ", HEAD";
    }
    const Access access = result.route == nullptr ? Access::kClients : result.route->access;
    if (access != Access::kPublic) {
        for (const Filter& filter : access == Access::kAdmin ? admin_filters_ : filters_) {
            result.refusal = filter(head);
            if (result.refusal) return result;
        }
    }
    if (result.route == nullptr)
        result.refusal = allowed.empty() ? no_such_route(head) : wrong_method(head, allowed);
    return result;
}

}  // namespace pagoda::http
