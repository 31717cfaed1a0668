#pragma once
// Server: HTTP/1.1 (RFC 9112) on Boost.Beast: connections, limits, time-outs, keep-alive and
// pipelining, streams. It knows nothing of routes beyond the Handler it is given. start() and
// stop() belong to one thread; connections live on the server's own threads, handlers on a pool.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "serve/http/router.h"

namespace pagoda::http {

struct ServerOptions {
    std::string host = "127.0.0.1";           // all addresses of a name are taken
    std::uint16_t port = 8080;                // 0: any free one
    int threads = 2;                          // for connections
    int handler_threads = 4;                  // and half as many for requests with large bodies
    std::size_t max_waiting_handlers = 1024;  // requests that wait for one of these, then 503
    std::uint64_t max_body_bytes = std::uint64_t{32} << 20;
    // Of all requests together, until they are handled, then 503: their first 64 KiB, and all that
    // comes behind (at least max_body_bytes).
    std::uint64_t max_small_bodies_bytes = std::uint64_t{8} << 20;
    std::uint64_t max_bodies_bytes = std::uint64_t{32} << 20;
    std::uint32_t max_header_bytes = 64U << 10;
    std::chrono::milliseconds header_timeout{20'000};  // then 408, as after a slow body
    // Between requests, for a body, for a reader that takes nothing.
    std::chrono::milliseconds idle_timeout{75'000};
    std::chrono::milliseconds heartbeat{10'000};
    std::size_t max_connections = 4096;  // fewer where the system's descriptors allow no more
    std::size_t max_unsent_bytes = std::size_t{4} << 20;  // of one stream
    // Called on an HTTP thread when the last answer that was pending is out or lost.
    std::function<void()> on_answered;
};

class Server {
  public:
    // router and logger outlive the server.
    Server(const ServerOptions& options, const Router& router, base::Logger& logger);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    // Binds and begins to accept. Errors name the address and the system's reason.
    [[nodiscard]] base::Status start();
    // The port that is bound.
    [[nodiscard]] std::uint16_t port() const;
    // Requests that were read and whose answer is not out, streams included.
    [[nodiscard]] std::size_t num_pending() const;
    // Closes everything, waits for the handlers that run and joins the threads. What writes to an
    // answer afterwards may do so until the server is destroyed, without effect.
    void stop();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda::http
