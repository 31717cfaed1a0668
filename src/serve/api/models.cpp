#include "serve/api/request_body.h"
#include "serve/api/routes.h"

namespace pagoda::api {
namespace {

base::Json model_json(const ApiContext& context, const std::string& name) {
    base::Json json = base::Json::object();
    json.set("id", name);
    json.set("object", "model");
    json.set("created", context.created);
    json.set("owned_by", "pagoda");
    json.set("root", context.model_root);
    json.set("parent", base::Json());
    json.set("max_model_len", context.engine->max_model_len());
    return json;
}

}  // namespace

void list_models(const ApiContext& context, http::Request&&, Writer writer) {
    base::Json::Array data;
    for (const std::string& name : context.model_names) data.push_back(model_json(context, name));
    base::Json json = base::Json::object();
    json.set("object", "list");
    json.set("data", std::move(data));
    writer->send(http::json_response(json));
}

void show_model(const ApiContext& context, http::Request&& request, Writer writer) {
    constexpr std::string_view kStem = "/v1/models/";
    const std::string name = request.path.substr(kStem.size());
    if (const auto known = check_model(context, name); !known)
        return writer->send(to_response(known.error()));
    writer->send(http::json_response(model_json(context, name)));
}

}  // namespace pagoda::api
