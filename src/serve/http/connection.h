#pragma once
// Connection: one client's socket and its requests, one after another. Lives on its own strand;
// keeps itself alive while something is under way. Internal to the server.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/log.h"
#include "serve/http/request_ids.h"
#include "serve/http/response_writer.h"
#include "serve/http/server.h"

namespace pagoda::http {

// What connections share. Outlives them all.
struct ServerState {
    const ServerOptions& options;
    const Router& router;
    base::Logger& logger;
    boost::asio::any_io_executor handlers;  // where handlers run
    RequestIds ids{};
    std::atomic<std::size_t> num_pending{0};
    std::atomic<std::size_t> num_connections{0};
    std::atomic<bool> stopping{false};
};

class Exchange;

class Connection final : public std::enable_shared_from_this<Connection> {
  public:
    Connection(boost::asio::ip::tcp::socket&& socket, ServerState& state);
    ~Connection();

    void start();
    // Any thread. An idle connection closes, a busy one after its answer, or at once.
    void stop(bool at_once);

  private:
    friend class Exchange;
    using Error = boost::system::error_code;
    using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

    // All below run on the strand. A reader that closes its sending side is taken as gone: until
    // something is written, a half-closed connection can't be told from one that was left.
    void wait_for_request();
    void read_header();
    void on_header(const Error& error);
    void read_body();
    void on_body(const Error& error);
    void limit_reading(std::chrono::milliseconds limit);
    void watch_deadline();
    void end_deadline();
    [[nodiscard]] std::optional<ErrorBody> lateness() const;
    void refuse(const Error& error);
    void dispatch();
    [[nodiscard]] std::optional<Request> take_request();
    void watch_reader();
    void on_readable(const std::shared_ptr<Exchange>& watched);

    void enqueue(std::string bytes);
    void write_next();
    void on_written(const Error& error, std::size_t bytes);
    void finish_exchange();
    void linger(std::size_t most_bytes);
    void lose_reader();
    void close();
    void arm_heartbeat();

    boost::beast::tcp_stream stream_;
    ServerState& state_;
    boost::asio::steady_timer heartbeat_;
    boost::asio::steady_timer deadline_;  // of the header or body that is being read
    boost::beast::flat_buffer buffer_;
    std::optional<Parser> parser_;
    std::shared_ptr<Exchange> exchange_;  // the request under way
    std::deque<std::string> outgoing_;
    bool is_writing_ = false;
    bool is_closed_ = false;
    bool is_first_ = true;
    bool is_late_ = false;          // the deadline passed
    bool has_unread_body_ = false;  // the request was refused before it was read
};

// The writer of one request; shared by the handler's side and the connection.
class Exchange final : public ResponseWriter, public std::enable_shared_from_this<Exchange> {
  public:
    struct Traits {
        std::string request_id;
        bool keep_alive = true;
        bool is_head = false;
        bool can_chunk = true;  // HTTP/1.1
    };
    Exchange(std::shared_ptr<Connection> connection, Traits traits);

    void send(Response response) override;
    void begin_stream(Response head) override;
    void write(std::string data) override;
    void end() override;
    void on_disconnect(std::function<void()> callback) override;

  private:
    friend class Connection;
    [[nodiscard]] std::string head_of(const Response& response, bool is_stream) const;
    void post(std::function<void()> action);
    void reader_gone();

    const std::shared_ptr<Connection> connection_;
    Traits traits_;
    std::atomic<std::size_t> unsent_bytes_{0};
    // On the strand.
    std::function<void()> disconnected_;
    bool is_stream_ = false;
    bool is_complete_ = false;
    bool is_gone_ = false;
    bool wrote_since_heartbeat_ = false;
};

}  // namespace pagoda::http
