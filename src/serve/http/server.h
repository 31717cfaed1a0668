#pragma once
// Server: HTTP/1.1 (RFC 9112) on Boost.Beast: connections, limits, time-outs, keep-alive and
// pipelining, streams. It knows nothing of routes beyond the Handler it is given. start() and
// stop() belong to one thread; handlers run on the server's own threads.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "serve/http/router.h"

namespace pagoda::http {

struct ServerOptions {
    std::string host = "127.0.0.1";
    std::uint16_t port = 8080;  // 0: any free one
    int threads = 2;
    std::uint64_t max_body_bytes = std::uint64_t{32} << 20;
    std::uint32_t max_header_bytes = 64U << 10;
    std::chrono::milliseconds header_timeout{20'000};  // then 408, as after a slow body
    // Between requests, for a body, for a stuck write.
    std::chrono::milliseconds idle_timeout{75'000};
    std::chrono::milliseconds heartbeat{10'000};
    std::size_t max_connections = 4096;
    std::size_t max_unsent_bytes = std::size_t{4} << 20;  // of one stream
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
    // Requests that have no answer yet, streams included.
    [[nodiscard]] std::size_t num_pending() const;
    // No new connections; idle ones close, others after their answer.
    void stop_accepting();
    // Closes everything and joins the threads.
    void stop();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda::http
