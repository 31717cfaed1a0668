#include "serve/http/answer_head.h"

#include <boost/beast/http/status.hpp>
#include <fmt/core.h>

namespace pagoda::http {

std::string answer_head(const Response& response, const AnswerTraits& traits, AnswerKind kind) {
    namespace http = boost::beast::http;
    const bool is_stream = kind == AnswerKind::kStream;
    const auto reason =
        http::obsolete_reason(http::int_to_status(static_cast<unsigned>(response.status)));
    std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status,
                                   std::string_view(reason.data(), reason.size()));
    head += fmt::format("Content-Type: {}\r\n", response.content_type);
    if (!is_stream)
        head += fmt::format("Content-Length: {}\r\n", response.body.size());
    else if (traits.can_chunk)
        head += "Transfer-Encoding: chunked\r\n";
    if (is_stream) head += "Cache-Control: no-cache\r\n";
    // Without chunks the end of a stream is the end of its connection.
    if (!traits.keep_alive || (is_stream && !traits.can_chunk))
        head += "Connection: close\r\n";
    else if (!traits.can_chunk)
        head += "Connection: keep-alive\r\n";
    head += fmt::format("X-Request-Id: {}\r\n", traits.request_id);
    for (const Header& header : response.headers)
        head += fmt::format("{}: {}\r\n", header.first, header.second);
    return head + "\r\n";
}

std::string chunk_of(std::string_view data) {
    return fmt::format("{:x}\r\n{}\r\n", data.size(), data);
}

}  // namespace pagoda::http
