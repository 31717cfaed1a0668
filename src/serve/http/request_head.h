#pragma once
// From what the parser read to a request, or to what its sender is told instead: pure functions.
// Internal to the server.

#include <chrono>
#include <optional>

#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/system/error_code.hpp>

#include "serve/http/message.h"
#include "serve/http/server.h"

namespace pagoda::http {

using RequestHeader = boost::beast::http::header<true, boost::beast::http::fields>;

// Method, path, query and headers. The path is empty where the target has no valid one.
[[nodiscard]] Request read_head(const RequestHeader& header);
// What the rules of HTTP say against it (RFC 9112, 3.2), if anything.
[[nodiscard]] std::optional<ErrorBody> head_fault(const Request& head, unsigned version);
// The sender waits for 100 before it sends the body.
[[nodiscard]] bool waits_for_continue(const RequestHeader& header);

// What a request that can't be read is told; nothing when there is nobody to tell.
[[nodiscard]] std::optional<ErrorBody> read_failure(const boost::system::error_code& error,
                                                    const ServerOptions& options);
[[nodiscard]] ErrorBody too_large_body(const ServerOptions& options);
// What every byte of a body earns its sender beyond idle_timeout: 16 KiB a second keep one going,
// so that a large body may take its time and a trickle holds nothing open.
inline constexpr std::chrono::nanoseconds kTimeForBodyByte =
    std::chrono::nanoseconds(std::chrono::seconds(1)) / (16 << 10);
enum class RequestPart { kHeader, kBody };
// What the sender of a part is told that did not come in time.
[[nodiscard]] ErrorBody lateness(RequestPart part, const ServerOptions& options);

}  // namespace pagoda::http
