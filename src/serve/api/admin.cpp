// /admin/...: what the operator asks of a running server. Access::kAdmin.

#include "serve/api/request_body.h"
#include "serve/api/routes.h"

namespace pagoda::api {

// What is asked after the answer finds nothing of what was computed before.
void reset_prefix_cache(const ApiContext& context, http::Request&&, Writer writer) {
    context.engine->reset_prefix_cache();
    base::Json json = base::Json::object();
    json.set("status", "ok");
    writer->send(http::json_response(json));
}

}  // namespace pagoda::api
