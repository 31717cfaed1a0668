#pragma once
// For tests of the server: one with routes of the test's own on a free port, and a client that
// sends bytes as they are. A client belongs to one thread.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/log.h"
#include "serve/http/server.h"

namespace pagoda::http::test {

// A server that answers POST /echo with the body and GET /now at once, beside the test's routes.
class TestServer {
  public:
    using AddRoutes = std::function<void(Router& router)>;
    explicit TestServer(ServerOptions options = {}, const AddRoutes& add_routes = nullptr,
                        base::LogLevel level = base::LogLevel::kError);

    [[nodiscard]] std::uint16_t port() const { return server_->port(); }
    [[nodiscard]] std::size_t num_pending() const { return server_->num_pending(); }
    // Until no answer is pending, for ever.
    void wait_answered();
    void stop() { server_->stop(); }

  private:
    std::mutex mutex_;
    std::condition_variable answered_;
    base::Logger logger_;
    Router router_;
    std::unique_ptr<Server> server_;
};

// A gate that handlers wait at until the test opens it.
class Gate {
  public:
    void open();
    void wait();
    // Until that many have come to it.
    void wait_for(int count);

  private:
    std::mutex mutex_;  // guards all below
    std::condition_variable changed_;
    bool is_open_ = false;
    int num_waiting_ = 0;
};

class Client {
  public:
    // The receive buffer's size in bytes; 0: the system's.
    explicit Client(std::uint16_t port, int receive_buffer = 0);
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    void send(std::string_view bytes) const;
    // Every few milliseconds, until the server says something.
    void send_until_answered(std::string_view bytes) const;
    // What there is, at least one byte; empty at the end.
    [[nodiscard]] std::string some(std::size_t most = 4096) const;
    // Up to and with that text; what comes behind it is kept for the next call.
    [[nodiscard]] std::string until(std::string_view text);
    // All that comes until the server closes its side.
    [[nodiscard]] std::string rest();
    // One whole answer with a Content-Length.
    [[nodiscard]] std::string answer();
    void close_sending() const;
    // Reads nothing for that long, as a slow reader does.
    void rest_for(std::chrono::milliseconds time) const;

  private:
    int socket_;
    std::string kept_;
};

[[nodiscard]] std::string get(std::string_view path);
[[nodiscard]] std::string post(std::string_view path, std::string_view body,
                               std::string_view more_headers = "");
// The status of an answer; 0 when it is none.
[[nodiscard]] int status_of(std::string_view answer);
// A member of the "error" object in an answer's body; empty when there is none.
[[nodiscard]] std::string error_member(std::string_view answer, std::string_view member);

}  // namespace pagoda::http::test
