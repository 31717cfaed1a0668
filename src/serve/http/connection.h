#pragma once
// Connection: one client's socket and its requests, one after another. Lives on its own strand;
// keeps itself alive while something is under way. Internal to the server.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "serve/http/exchange.h"
#include "serve/http/server_state.h"

namespace pagoda::http {

// A request that is being read.
struct IncomingRequest {
    Request request;
    AnswerTraits traits;
    RequestRecord record;
    BodyBudget::Share share;
    const Route* route = nullptr;
};

class Connection final : public std::enable_shared_from_this<Connection> {
  public:
    Connection(boost::asio::ip::tcp::socket&& socket, ServerState& state);
    ~Connection();

    void start();
    // Any thread. An answer under way is cut.
    void stop();

    // For its exchange. All but executor(), options() and logger() on the strand.
    [[nodiscard]] auto executor() { return stream_.get_executor(); }
    [[nodiscard]] const ServerOptions& options() const { return state_.options; }
    [[nodiscard]] base::Logger& logger() { return state_.logger; }
    void enqueue(std::string bytes);
    void finish_if_written();
    void arm_heartbeat();
    // Nobody takes the answer. The status is for the log.
    void lose_reader(int status);
    // The action as a completion that keeps this connection alive: what it throws, for want of
    // memory above all, ends this connection alone.
    template <typename Action>
    [[nodiscard]] auto guarded(Action action) {
        return [self = shared_from_this(),
                action = std::move(action)](const auto&... results) mutable {
            try {
                action(*self, results...);
            } catch (const std::exception& fault) {
                self->fail(fault);
            }
        };
    }

  private:
    using Error = boost::system::error_code;
    using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

    // All below run on the strand. Reading a request: its header is judged before its body is
    // read, so that who is refused has nothing kept.
    void wait_for_request();
    void read_header();
    void on_header(const Error& error);
    void take_header();
    [[nodiscard]] std::optional<Response> judge_header();
    void send_continue();
    void read_body();
    void on_body(const Error& error);
    void limit_reading(std::chrono::milliseconds limit);
    void watch_deadline();
    void end_deadline();
    void refuse(const Error& error);
    void refuse(Response&& response);
    void dispatch();
    void begin_exchange();

    // Waiting for the answer. A reader that closes its sending side is taken as gone: until
    // something is written, a half-closed connection can't be told from one that was left.
    void watch_reader();
    void on_readable(const std::shared_ptr<Exchange>& watched);

    // Writing the answer.
    void write_next();
    void on_written(const Error& error, std::size_t bytes);
    void watch_progress();
    [[nodiscard]] bool has_progress();
    void finish_exchange();
    void linger(std::size_t most_bytes);
    void fail(const std::exception& fault);
    void close();

    boost::beast::tcp_stream stream_;
    ServerState& state_;
    boost::asio::steady_timer heartbeat_;
    boost::asio::steady_timer deadline_;                // of the header or body that is being read
    boost::asio::steady_timer::time_point read_until_;  // what it is, with what a body has earned
    boost::asio::steady_timer progress_;                // of what is being written
    boost::beast::flat_buffer buffer_;
    std::optional<Parser> parser_;
    std::size_t num_body_bytes_ = 0;  // that have come
    std::optional<IncomingRequest> incoming_;
    std::shared_ptr<Exchange> exchange_;  // the request under way
    std::deque<std::string> outgoing_;
    std::size_t num_written_ = 0;  // bytes of the first of them
    std::uint64_t total_written_ = 0;
    std::uint64_t acknowledged_ = 0;  // as the last look at the progress found it
    bool is_writing_ = false;
    bool is_closed_ = false;
    bool is_first_ = true;
    bool is_late_ = false;          // the deadline passed
    bool has_unread_body_ = false;  // the request was refused before it was read
};

}  // namespace pagoda::http
