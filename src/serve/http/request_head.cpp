#include "serve/http/request_head.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include <boost/beast/http/error.hpp>
#include <fmt/core.h>

namespace pagoda::http {
namespace {

namespace http = boost::beast::http;

constexpr unsigned kVersion11 = 11;

// The path and the query of an origin-form or absolute-form target.
std::pair<std::string_view, std::string_view> split_target(std::string_view target) {
    if (const std::size_t scheme = target.find("://");
        scheme != std::string_view::npos && !target.starts_with('/')) {
        const std::size_t slash = target.find('/', scheme + 3);
        target = slash == std::string_view::npos ? "/" : target.substr(slash);
    }
    const std::size_t query = target.find('?');
    if (query == std::string_view::npos) return {target, {}};
    return {target.substr(0, query), target.substr(query + 1)};
}

ErrorBody bad_request(std::string message) {
    return {.status = 400, .message = std::move(message), .code = "bad_request"};
}

// Whoever stands between may take it for another body, or for none (RFC 9112, 6.1).
std::optional<ErrorBody> coding_fault(const Request& head, unsigned version) {
    bool is_chunked = false;
    for (const auto& [name, value] : head.headers) {
        if (!equals_ignoring_case(name, "transfer-encoding")) continue;
        if (version < kVersion11)
            return bad_request("Transfer-Encoding is not for requests before HTTP/1.1");
        if (std::exchange(is_chunked, true) || !equals_ignoring_case(value, "chunked"))
            return ErrorBody{.status = 501,
                             .message =
                                 "the only Transfer-Encoding that this server takes is "
                                 "chunked, once",
                             .code = "not_implemented"};
    }
    return std::nullopt;
}

}  // namespace

Request read_head(const RequestHeader& header) {
    Request head;
    head.method.assign(header.method_string().data(), header.method_string().size());
    const auto [path, query] = split_target({header.target().data(), header.target().size()});
    head.path = percent_decode(path, /*plus_is_space=*/false).value_or("");
    head.query = query;
    for (const auto& field : header)
        head.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    return head;
}

std::optional<ErrorBody> head_fault(const Request& head, unsigned version) {
    if (head.path.empty()) return bad_request("the request's path is not valid");
    const auto hosts = std::count_if(
        head.headers.begin(), head.headers.end(),
        [](const Header& header) { return equals_ignoring_case(header.first, "host"); });
    if (hosts == 0 && version >= kVersion11)
        return bad_request("an HTTP/1.1 request needs a Host header");
    // Whoever stands between may have looked at another of them.
    if (hosts > 1)
        return bad_request(fmt::format("the request has {} Host headers, must have one", hosts));
    return coding_fault(head, version);
}

bool waits_for_continue(const RequestHeader& header) {
    const auto expect = header[http::field::expect];
    return header.version() >= kVersion11 &&
           equals_ignoring_case({expect.data(), expect.size()}, "100-continue");
}

ErrorBody too_large_body(const ServerOptions& options) {
    return {.status = 413,
            .message = fmt::format("the request's body is larger than the limit of {} bytes "
                                   "(max_body)",
                                   options.max_body_bytes),
            .code = "body_too_large"};
}

std::optional<ErrorBody> read_failure(const boost::system::error_code& error,
                                      const ServerOptions& options) {
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
        return ErrorBody{.status = 431,
                         .message = fmt::format("the request's headers, trailers or chunk "
                                                "extensions are larger than the limit of {} bytes "
                                                "(max_header)",
                                                options.max_header_bytes),
                         .code = "header_too_large"};
    if (error == http::error::body_limit) return too_large_body(options);
    if (error == http::error::end_of_stream || error == http::error::partial_message ||
        error.category() != http::make_error_code(http::error::bad_method).category())
        return std::nullopt;
    return bad_request("the request is not valid HTTP/1.1: " + error.message());
}

ErrorBody lateness(RequestPart part, const ServerOptions& options) {
    const auto seconds = [](std::chrono::duration<double> time) { return time.count(); };
    const std::string limit =
        part == RequestPart::kHeader
            ? fmt::format("header did not come within {} s (header_timeout)",
                          seconds(options.header_timeout))
            : fmt::format(
                  "body did not come within {} s (idle_timeout) and one more for every {} "
                  "bytes",
                  seconds(options.idle_timeout), std::chrono::seconds{1} / kTimeForBodyByte);
    return {.status = 408,
            .message = fmt::format("the request's {}; send it again, or faster", limit),
            .code = "request_timeout"};
}

}  // namespace pagoda::http
