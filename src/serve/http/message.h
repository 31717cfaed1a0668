#pragma once
// HTTP messages as values: what a handler gets and gives. Header names are compared without case
// (RFC 9110). Not thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/json.h"
#include "base/result.h"

namespace pagoda::http {

using Header = std::pair<std::string, std::string>;

// Who asks, as the gateway found out.
struct Principal {
    std::string name;       // for logs and metrics; never the key
    base::ClientId client;  // for fairness
};

struct Request {
    std::string method;  // "GET"
    std::string path;    // decoded, without the query
    std::string query;   // as sent
    std::vector<Header> headers;
    std::string body;
    std::string remote_address;
    bool is_loopback = false;  // the peer is on this machine
    std::string id;            // x-request-id: the client's if it is sane, else ours
    std::optional<Principal> principal;

    // The first header of that name, or null.
    [[nodiscard]] const std::string* header(std::string_view name) const;
};

struct Response {
    int status = 200;
    std::string content_type = "application/json";
    std::string body;
    std::vector<Header> headers;  // beside content-type, content-length and x-request-id
};

// An error in OpenAI's shape: {"error":{"message","type","param","code"}}.
struct ErrorBody {
    int status = 500;
    std::string message;
    std::string code;   // "context_length_exceeded", ...; empty: null
    std::string param;  // empty: null
};
[[nodiscard]] base::Json error_json(const ErrorBody& error);
[[nodiscard]] Response error_response(const ErrorBody& error);
[[nodiscard]] Response json_response(const base::Json& body);
// The type that OpenAI gives to errors of a status: "invalid_request_error", ...
[[nodiscard]] std::string_view error_type(int status);

// One server-sent event of a JSON document (WHATWG HTML, 9.2): "data: ...\n\n".
[[nodiscard]] std::string sse_data(const base::Json& document);
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";

// %XX and, in queries, '+'. Nothing on a malformed escape or an embedded NUL.
[[nodiscard]] std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);
[[nodiscard]] bool equals_ignoring_case(std::string_view a, std::string_view b);

}  // namespace pagoda::http
