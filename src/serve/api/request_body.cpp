#include "serve/api/request_body.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/core.h>

namespace pagoda::api {

namespace {

// application/json, or a format of its own upon it (RFC 6839), with any parameters.
bool is_json_type(std::string_view type) {
    constexpr std::string_view kBlanks = " \t";
    constexpr std::string_view kSuffix = "+json";
    type = type.substr(0, type.find(';'));
    const std::size_t last = type.find_last_not_of(kBlanks);
    type = type.substr(0, last == std::string_view::npos ? 0 : last + 1);
    type.remove_prefix(std::min(type.find_first_not_of(kBlanks), type.size()));
    return http::equals_ignoring_case(type, "application/json") ||
           (type.size() > kSuffix.size() &&
            http::equals_ignoring_case(type.substr(type.size() - kSuffix.size()), kSuffix));
}

// A body without a type is taken as JSON; one of another type was meant for something else.
base::Status check_media(const http::Request& request) {
    const std::string* type = request.header(kContentType);
    if (type == nullptr || is_json_type(*type)) return {};
    return base::Error{base::ErrorCode::kUnsupported,
                       fmt::format("a body of content-type {} is not supported, it must be "
                                   "application/json (curl: -H 'Content-Type: application/json')",
                                   brief(base::Json(*type))),
                       std::string(kContentType)};
}

}  // namespace

base::Result<base::Json> parse_body(http::Request& request) {
    if (const auto media = check_media(request); !media) return media.error();
    const std::string* encoding = request.header(kContentEncoding);
    if (encoding != nullptr && !http::equals_ignoring_case(*encoding, "identity"))
        return base::Error{base::ErrorCode::kUnsupported,
                           "a body in content-encoding " + brief(base::Json(*encoding)) +
                               " is not supported; send it plain",
                           std::string(kContentEncoding)};
    if (request.body.empty())
        return base::invalid("the request has no body; a JSON object is expected");
    const std::string text = std::exchange(request.body, std::string());
    auto parsed = base::Json::parse(text, {.max_values = kMaxBodyValues});
    if (!parsed) {
        const bool is_too_much = parsed.error().code == base::ErrorCode::kResourceExhausted;
        return base::Error{parsed.error().code,
                           "the request's body can't be read as JSON: " + parsed.error().message +
                               (is_too_much ? "; send less in one request" : "")};
    }
    if (!parsed->is_object())
        return base::invalid(
            fmt::format("the request's body must be a JSON object, got {}", parsed->type_name()));
    return parsed;
}

FieldReader read_body(http::Request& request) {
    auto body = parse_body(request);
    FieldReader reader(
        std::make_unique<base::Json>(body ? std::move(*body) : base::Json::object()));
    if (!body) reader.fail(body.error());
    return reader;
}

base::Status check_fields(const ApiContext& context, const FieldReader& reader,
                          const std::optional<std::string>& model) {
    if (!reader.ok()) return reader.error();
    return check_model(context, model);
}

base::ClientId client_of(const http::Request& request) {
    return request.principal ? request.principal->client : base::ClientId();
}

http::ErrorBody to_http(const base::Error& error) {
    http::ErrorBody body{.message = error.message, .param = error.param};
    switch (error.code) {
        case base::ErrorCode::kInvalidArgument:
            body.status = 400;
            body.code = "invalid_value";
            if (error.param == engine::kContextLength) {
                body.code = "context_length_exceeded";
                body.param.clear();  // prompt and max_tokens together, no field of that name
            }
            break;
        case base::ErrorCode::kUnsupported:
            body.status =
                error.param == kContentEncoding || error.param == kContentType ? 415 : 400;
            body.code = "unsupported_value";
            break;
        case base::ErrorCode::kNotFound:
            body.status = 404;
            body.code = error.param == kModelField ? "model_not_found" : "not_found";
            break;
        case base::ErrorCode::kResourceExhausted:
            body.status = 400;
            body.code = "resource_limit_exceeded";
            break;
        case base::ErrorCode::kUnavailable:
            body.status = 503;
            body.code = "server_overloaded";
            break;
        case base::ErrorCode::kCancelled:
        case base::ErrorCode::kDeadlineExceeded:
            body.status = 503;
            body.code = "request_cancelled";
            break;
        case base::ErrorCode::kDataLoss:
        case base::ErrorCode::kIo:
        case base::ErrorCode::kInternal:
            body.status = 500;
            body.code = "internal_error";
            break;
    }
    return body;
}

http::Response to_response(const base::Error& error) {
    return http::error_response(to_http(error));
}

void add_ignored_fields(const std::vector<std::string>& names, http::Response& response) {
    if (names.empty()) return;
    constexpr std::size_t kLongest = 1024;
    std::string list;
    for (const std::string& name : names) {
        if (list.size() + name.size() > kLongest) {
            list += list.empty() ? "..." : ", ...";
            break;
        }
        if (!list.empty()) list += ", ";
        // Names come from outside and go into a header: visible ASCII only.
        for (const char c : name) list += c > ' ' && c < '\x7f' && c != ',' ? c : '?';
    }
    response.headers.emplace_back("x-pagoda-ignored-fields", list);
}

base::Status check_model(const ApiContext& context, const std::optional<std::string>& name) {
    const auto& names = context.model_names;
    if (!name || std::find(names.begin(), names.end(), *name) != names.end()) return {};
    return base::Error{base::ErrorCode::kNotFound,
                       fmt::format("the model {} does not exist; this server has {}",
                                   brief(base::Json(*name)), brief(base::Json(names.front()))),
                       std::string(kModelField)};
}

}  // namespace pagoda::api
