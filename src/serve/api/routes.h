#pragma once
// The handlers, one file per API. The table that names their paths is in routes.cpp.

#include <memory>

#include "serve/api/api_context.h"
#include "serve/http/router.h"

namespace pagoda::api {

using Writer = std::shared_ptr<http::ResponseWriter>;

void chat_completions(const ApiContext& context, http::Request&& request, Writer writer);
void completions(const ApiContext& context, http::Request&& request, Writer writer);
void list_models(const ApiContext& context, http::Request&& request, Writer writer);
void show_model(const ApiContext& context, http::Request&& request, Writer writer);
void tokenize(const ApiContext& context, http::Request&& request, Writer writer);
void detokenize(const ApiContext& context, http::Request&& request, Writer writer);
void apply_template(const ApiContext& context, http::Request&& request, Writer writer);
void health(const ApiContext& context, http::Request&& request, Writer writer);
void ready(const ApiContext& context, http::Request&& request, Writer writer);
void version(const ApiContext& context, http::Request&& request, Writer writer);
void reset_prefix_cache(const ApiContext& context, http::Request&& request, Writer writer);
void metrics(const ApiContext& context, http::Request&& request, Writer writer);

}  // namespace pagoda::api
