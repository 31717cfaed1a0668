#pragma once
// Router: an explicit table of routes. Immutable once serving; thread-safe then.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/http/message.h"
#include "serve/http/response_writer.h"

namespace pagoda::http {

// Called on a thread of the handlers' pool, or on the connection's own for an immediate route. The
// writer may be kept and used from any thread until it is done.
using Handler = std::function<void(Request&& request, std::shared_ptr<ResponseWriter> writer)>;
// Looks at a request whose body has not been read, before its route is told: a response refuses
// it, nothing lets it pass. May set principal. Called on the connections' threads, several at a
// time: it must neither block nor take long.
using Filter = std::function<std::optional<Response>(Request& head)>;

// Whose filters a request must pass: the clients', nobody's (/health, /ready), or the operator's.
enum class Access : std::uint8_t { kClients, kPublic, kAdmin };

struct Route {
    std::string method;  // GET routes answer HEAD too
    // Whole path; a last segment of "*" takes the rest: "/v1/models/*".
    std::string path;
    Handler handler;
    Access access = Access::kClients;
    bool is_immediate = false;  // done in microseconds: waits for no thread of the pool
    bool is_quiet = false;      // asked all the time by machines: logged at debug level
};

// What a request's header comes to.
struct Routing {
    const Route* route = nullptr;     // null: there is none
    std::optional<Response> refusal;  // nothing: the route's handler may have the request
};

class Router {
  public:
    void add(Route route) { routes_.push_back(std::move(route)); }
    void add_filter(Filter filter) { filters_.push_back(std::move(filter)); }
    // For routes of kAdmin alone, which ask no other filter.
    void add_admin_filter(Filter filter) { admin_filters_.push_back(std::move(filter)); }
    // The route of a request, or why it gets none: a filter's answer, 404 or 405 (with Allow).
    [[nodiscard]] Routing admit(Request& head) const;

  private:
    std::vector<Route> routes_;
    std::vector<Filter> filters_;
    std::vector<Filter> admin_filters_;
};

}  // namespace pagoda::http
