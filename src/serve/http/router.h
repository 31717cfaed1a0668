#pragma once
// Router: an explicit table of routes. Immutable once serving; thread-safe then.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/http/message.h"
#include "serve/http/response_writer.h"

namespace pagoda::http {

// Called on an HTTP thread. The writer may be kept and used from any thread until it is done.
using Handler = std::function<void(Request&& request, std::shared_ptr<ResponseWriter> writer)>;
// Runs before a route: a response refuses the request, nothing lets it pass. May set principal.
using Filter = std::function<std::optional<Response>(Request& request)>;

struct Route {
    std::string method;  // GET routes answer HEAD too
    // Whole path; a last segment of "*" takes the rest: "/v1/models/*".
    std::string path;
    Handler handler;
    bool is_public = false;  // filters do not apply (/health, /ready)
};

class Router {
  public:
    void add(Route route) { routes_.push_back(std::move(route)); }
    void add_filter(Filter filter) { filters_.push_back(std::move(filter)); }
    // 404 and 405 (with Allow) are answered here.
    void dispatch(Request&& request, std::shared_ptr<ResponseWriter> writer) const;

  private:
    std::vector<Route> routes_;
    std::vector<Filter> filters_;
};

}  // namespace pagoda::http
