#pragma once
// From an HTTP request to a JSON object, and from errors to HTTP: what all routes share.

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "serve/api/api_context.h"
#include "serve/api/field_reader.h"
#include "serve/http/message.h"
#include "text/tokenizer.h"

namespace pagoda::api {

// Values of one body, at most: enough for the token ids of a whole context of 128k, twice. With all
// bodies together within their share, and handlers few, this bounds what requests take while they
// are understood: measured 170 MiB for four of the worst at once.
inline constexpr std::size_t kMaxBodyValues = std::size_t{1} << 18;

// The body as an object; the request's own copy of it is gone afterwards. Errors say what is wrong
// with it, or with its headers.
[[nodiscard]] base::Result<base::Json> parse_body(http::Request& request);

// The body's fields. One that can't be read is the reader's error, and has none.
[[nodiscard]] FieldReader read_body(http::Request& request);

// What every route asks once it has read its fields, before it works on them: that they are good,
// and that the model is one of ours.
[[nodiscard]] base::Status check_fields(const ApiContext& context, const FieldReader& reader,
                                        const std::optional<std::string>& model);

// Who asks, for fairness.
[[nodiscard]] base::ClientId client_of(const http::Request& request);

// The HTTP form of an error.
[[nodiscard]] http::ErrorBody to_http(const base::Error& error);
[[nodiscard]] http::Response to_response(const base::Error& error);

// {"x-pagoda-ignored-fields", "a, b"} when there are such fields.
void add_ignored_fields(const std::vector<std::string>& names, http::Response& response);

// Fails with 404 model_not_found unless the name is one of ours; absent is fine.
[[nodiscard]] base::Status check_model(const ApiContext& context,
                                       const std::optional<std::string>& name);

// Something unsupported with one of these params is 415.
inline constexpr std::string_view kContentEncoding = "content-encoding";
inline constexpr std::string_view kContentType = "content-type";
// kNotFound with this param is model_not_found.
inline constexpr std::string_view kModelField = "model";

}  // namespace pagoda::api
