#include "serve/http/connection.h"

#include <chrono>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/verb.hpp>
#include <fmt/core.h>

namespace pagoda::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::string_view kHeartbeat = ": heartbeat\n\n";
// How much of a refused body is read and thrown away, so that its sender gets to read the answer.
constexpr std::size_t kMaxLingerBytes = std::size_t{256} << 20;
constexpr std::chrono::seconds kMaxLingerTime{5};
constexpr std::chrono::milliseconds kCancelAgain{20};

std::string chunk(std::string_view data) {
    return fmt::format("{:x}\r\n{}\r\n", data.size(), data);
}

// What a request that can't be read is told; nothing when there is nobody to tell.
std::optional<ErrorBody> read_failure(const boost::system::error_code& error,
                                      const ServerOptions& options) {
    namespace http = beast::http;
    if (error == http::error::header_limit || error == http::error::buffer_overflow)
        return ErrorBody{.status = 431,
                         .message = fmt::format("the request's headers are larger than the limit "
                                                "of {} bytes (max_header)",
                                                options.max_header_bytes),
                         .code = "header_too_large"};
    if (error == http::error::body_limit)
        return ErrorBody{.status = 413,
                         .message = fmt::format("the request's body is larger than the limit of "
                                                "{} bytes (max_body)",
                                                options.max_body_bytes),
                         .code = "body_too_large"};
    if (error == http::error::end_of_stream || error == http::error::partial_message ||
        error.category() != http::make_error_code(http::error::bad_method).category())
        return std::nullopt;
    return ErrorBody{.status = 400,
                     .message = "the request is not valid HTTP/1.1: " + error.message(),
                     .code = "bad_request"};
}

// The path of an origin-form or absolute-form target.
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

// Nothing a handler throws may leave it: the request fails alone.
void handle(ServerState& state, Request&& request, const std::shared_ptr<Exchange>& writer) {
    const std::string id = request.id;
    try {
        state.router.dispatch(std::move(request), writer);
    } catch (const std::exception& fault) {
        state.logger.error(fmt::format("{}: a handler failed: {}", id, fault.what()));
        writer->send(
            error_response({.status = 500, .message = "the server failed to handle this request"}));
    }
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket&& socket, ServerState& state)
    : stream_(std::move(socket)),
      state_(state),
      heartbeat_(stream_.get_executor()),
      deadline_(stream_.get_executor()) {
    state_.num_connections.fetch_add(1);
}

Connection::~Connection() {
    state_.num_connections.fetch_sub(1);
}

void Connection::start() {
    asio::post(stream_.get_executor(), [self = shared_from_this()] { self->wait_for_request(); });
}

void Connection::stop(bool at_once) {
    asio::post(stream_.get_executor(), [self = shared_from_this(), at_once] {
        if (at_once && self->exchange_)
            self->lose_reader();
        else if (!self->exchange_)
            self->close();
    });
}

// A connection may idle between requests; once a request has begun, its header must come in time.
void Connection::wait_for_request() {
    if (is_closed_) return;
    if (state_.stopping.load()) {
        close();
        return;
    }
    if (is_first_ || buffer_.size() > 0) {
        read_header();
        return;
    }
    stream_.expires_after(state_.options.idle_timeout);
    // Reading nothing waits for the first byte under the stream's timer.
    stream_.async_read_some(buffer_.prepare(4096),
                            [self = shared_from_this()](const Error& error, std::size_t bytes) {
                                if (error) {
                                    self->close();
                                    return;
                                }
                                self->buffer_.commit(bytes);
                                self->read_header();
                            });
}

void Connection::read_header() {
    is_first_ = false;
    parser_.emplace();
    parser_->header_limit(state_.options.max_header_bytes);
    parser_->body_limit(state_.options.max_body_bytes);
    limit_reading(state_.options.header_timeout);
    beast::http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](const Error& error, std::size_t) { self->on_header(error); });
}

void Connection::on_header(const Error& error) {
    end_deadline();
    if (error) {
        refuse(error);
        return;
    }
    const auto expect = parser_->get()[beast::http::field::expect];
    if (!equals_ignoring_case({expect.data(), expect.size()}, "100-continue")) {
        read_body();
        return;
    }
    asio::async_write(stream_, asio::buffer(kContinue),
                      [self = shared_from_this()](const Error& write_error, std::size_t) {
                          if (write_error)
                              self->close();
                          else
                              self->read_body();
                      });
}

void Connection::read_body() {
    limit_reading(state_.options.idle_timeout);
    beast::http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](const Error& error, std::size_t) { self->on_body(error); });
}

void Connection::on_body(const Error& error) {
    end_deadline();
    if (error)
        refuse(error);
    else
        dispatch();
}

// The stream's own timer closes the socket, and with it the way to say why. This one ends the read
// alone.
void Connection::limit_reading(std::chrono::milliseconds limit) {
    stream_.expires_never();
    is_late_ = false;
    deadline_.expires_after(limit);
    watch_deadline();
}

void Connection::watch_deadline() {
    deadline_.async_wait([self = shared_from_this()](const Error& error) {
        // Called though the read has ended in the meantime: the deadline is another one then.
        if (error || self->deadline_.expiry() > std::chrono::steady_clock::now()) return;
        self->is_late_ = true;
        self->stream_.cancel();
        // A read that is just between two pieces does not notice.
        self->deadline_.expires_after(kCancelAgain);
        self->watch_deadline();
    });
}

void Connection::end_deadline() {
    deadline_.expires_at(asio::steady_timer::time_point::max());
}

// What a client is told that was too slow; nothing when it had not even begun.
std::optional<ErrorBody> Connection::lateness() const {
    if (!parser_->got_some() && buffer_.size() == 0) return std::nullopt;
    const bool has_header = parser_->is_header_done();
    const std::chrono::duration<double> limit =
        has_header ? state_.options.idle_timeout : state_.options.header_timeout;
    return ErrorBody{.status = 408,
                     .message = fmt::format("the request's {} did not come within {} s ({}); send "
                                            "it again, or faster",
                                            has_header ? "body" : "header", limit.count(),
                                            has_header ? "idle_timeout" : "header_timeout"),
                     .code = "request_timeout"};
}

void Connection::refuse(const Error& error) {
    const std::optional<ErrorBody> failure = is_late_ && error == asio::error::operation_aborted
                                                 ? lateness()
                                                 : read_failure(error, state_.options);
    if (!failure) {
        close();
        return;
    }
    state_.num_pending.fetch_add(1);
    has_unread_body_ = true;
    exchange_ = std::make_shared<Exchange>(
        shared_from_this(), Exchange::Traits{.request_id = state_.ids.next(), .keep_alive = false});
    exchange_->send(error_response(*failure));
}

std::optional<Request> Connection::take_request() {
    auto& message = parser_->get();
    Request request;
    request.method.assign(message.method_string().data(), message.method_string().size());
    const auto [path, query] = split_target({message.target().data(), message.target().size()});
    std::optional<std::string> decoded = percent_decode(path, false);
    if (!decoded || decoded->empty()) return std::nullopt;
    request.path = std::move(*decoded);
    request.query = query;
    for (const auto& field : message)
        request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    request.body = std::move(message.body());
    Error error;
    const auto peer = stream_.socket().remote_endpoint(error);
    if (!error) {
        request.remote_address = peer.address().to_string();
        request.is_loopback = peer.address().is_loopback();
    }
    const std::string* id = request.header("x-request-id");
    request.id = id != nullptr && RequestIds::is_sane(*id) ? *id : state_.ids.next();
    return request;
}

void Connection::dispatch() {
    Exchange::Traits traits;
    traits.keep_alive = parser_->keep_alive() && !state_.stopping.load();
    traits.can_chunk = parser_->get().version() >= 11;
    std::optional<Request> request = take_request();
    traits.request_id = request ? request->id : state_.ids.next();
    traits.is_head = request && request->method == "HEAD";
    parser_.reset();
    stream_.expires_never();
    state_.num_pending.fetch_add(1);
    exchange_ = std::make_shared<Exchange>(shared_from_this(), std::move(traits));
    const char* fault = nullptr;
    if (!request)
        fault = "the request's path is not valid";
    else if (exchange_->traits_.can_chunk && request->header("host") == nullptr)
        fault = "an HTTP/1.1 request needs a Host header";
    if (fault != nullptr) {
        exchange_->send(error_response({.status = 400, .message = fault, .code = "bad_request"}));
        return;
    }
    watch_reader();
    // The handler may take a while; the strand must stay free to notice the reader's going.
    asio::post(state_.handlers,
               [&state = state_, incoming = std::move(*request), writer = exchange_]() mutable {
                   handle(state, std::move(incoming), writer);
               });
}

// Notices a reader that goes away while its answer is made.
void Connection::watch_reader() {
    stream_.socket().async_wait(
        asio::ip::tcp::socket::wait_read,
        [self = shared_from_this(), watched = exchange_](const Error& error) {
            if (!error && self->exchange_ == watched) self->on_readable(watched);
        });
}

void Connection::on_readable(const std::shared_ptr<Exchange>& watched) {
    char byte = 0;
    Error error;
    stream_.socket().non_blocking(true, error);
    const std::size_t bytes = stream_.socket().receive(asio::buffer(&byte, 1),
                                                       asio::ip::tcp::socket::message_peek, error);
    if (error == asio::error::would_block) {
        watch_reader();
        return;
    }
    // A next request that is there already waits its turn; then only writing shows a disconnect.
    if (!error && bytes > 0) return;
    if (exchange_ == watched) lose_reader();
}

void Connection::enqueue(std::string bytes) {
    if (is_closed_ || bytes.empty()) return;
    outgoing_.push_back(std::move(bytes));
    if (!is_writing_) write_next();
}

void Connection::write_next() {
    is_writing_ = true;
    stream_.expires_after(state_.options.idle_timeout);
    asio::async_write(stream_, asio::buffer(outgoing_.front()),
                      [self = shared_from_this()](const Error& error, std::size_t bytes) {
                          self->on_written(error, bytes);
                      });
}

void Connection::on_written(const Error& error, std::size_t bytes) {
    is_writing_ = false;
    if (is_closed_) return;
    if (error) {
        lose_reader();
        return;
    }
    outgoing_.pop_front();
    if (exchange_) exchange_->unsent_bytes_.fetch_sub(bytes);
    if (!outgoing_.empty()) {
        write_next();
        return;
    }
    stream_.expires_never();
    if (exchange_ && exchange_->is_complete_) finish_exchange();
}

void Connection::finish_exchange() {
    const bool keep_alive = exchange_->traits_.keep_alive && !state_.stopping.load();
    heartbeat_.cancel();
    exchange_->disconnected_ = nullptr;
    exchange_.reset();
    state_.num_pending.fetch_sub(1);
    Error ignored;
    stream_.socket().cancel(ignored);  // the watch of the reader
    if (keep_alive) return wait_for_request();
    if (!has_unread_body_) return close();
    // Closing with unread input would reset the connection and lose the answer (RFC 9112, 9.6).
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    stream_.expires_after(kMaxLingerTime);
    buffer_.clear();
    linger(kMaxLingerBytes);
}

void Connection::linger(std::size_t most_bytes) {
    constexpr std::size_t kPiece = 64U << 10;
    stream_.async_read_some(buffer_.prepare(kPiece), [self = shared_from_this(), most_bytes](
                                                         const Error& error, std::size_t bytes) {
        if (error || bytes >= most_bytes || self->is_closed_)
            self->close();
        else
            self->linger(most_bytes - bytes);
    });
}

void Connection::lose_reader() {
    if (exchange_) {
        const std::shared_ptr<Exchange> lost = std::exchange(exchange_, nullptr);
        state_.num_pending.fetch_sub(1);
        lost->reader_gone();
    }
    close();
}

void Connection::close() {
    if (is_closed_) return;
    is_closed_ = true;
    heartbeat_.cancel();
    end_deadline();
    outgoing_.clear();
    Error ignored;
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    stream_.close();
}

void Connection::arm_heartbeat() {
    heartbeat_.expires_after(state_.options.heartbeat);
    heartbeat_.async_wait([self = shared_from_this(), beating = exchange_](const Error& error) {
        if (error || self->exchange_ != beating || beating->is_complete_) return;
        if (!std::exchange(beating->wrote_since_heartbeat_, false)) {
            const std::string bytes =
                beating->traits_.can_chunk ? chunk(kHeartbeat) : std::string(kHeartbeat);
            beating->unsent_bytes_.fetch_add(bytes.size());
            self->enqueue(bytes);
        }
        self->arm_heartbeat();
    });
}

Exchange::Exchange(std::shared_ptr<Connection> connection, Traits traits)
    : connection_(std::move(connection)), traits_(std::move(traits)) {}

void Exchange::post(std::function<void()> action) {
    asio::post(connection_->stream_.get_executor(),
               [self = shared_from_this(), action = std::move(action)] {
                   if (!self->is_gone_) action();
               });
}

std::string Exchange::head_of(const Response& response, bool is_stream) const {
    const auto reason = beast::http::obsolete_reason(
        beast::http::int_to_status(static_cast<unsigned>(response.status)));
    std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status,
                                   std::string_view(reason.data(), reason.size()));
    head += fmt::format("Content-Type: {}\r\n", response.content_type);
    if (!is_stream)
        head += fmt::format("Content-Length: {}\r\n", response.body.size());
    else if (traits_.can_chunk)
        head += "Transfer-Encoding: chunked\r\nCache-Control: no-cache\r\n";
    if (!traits_.keep_alive || (is_stream && !traits_.can_chunk)) head += "Connection: close\r\n";
    head += fmt::format("X-Request-Id: {}\r\n", traits_.request_id);
    for (const Header& header : response.headers)
        head += fmt::format("{}: {}\r\n", header.first, header.second);
    return head + "\r\n";
}

void Exchange::send(Response response) {
    std::string bytes = head_of(response, /*is_stream=*/false);
    if (!traits_.is_head) bytes += response.body;
    unsent_bytes_.fetch_add(bytes.size());
    post([this, bytes = std::move(bytes)]() mutable {
        is_complete_ = true;
        connection_->enqueue(std::move(bytes));
    });
}

void Exchange::begin_stream(Response head) {
    std::string bytes = head_of(head, /*is_stream=*/true);
    unsent_bytes_.fetch_add(bytes.size());
    post([this, bytes = std::move(bytes)]() mutable {
        is_stream_ = true;
        if (!traits_.can_chunk) traits_.keep_alive = false;
        connection_->enqueue(std::move(bytes));
        connection_->arm_heartbeat();
    });
}

void Exchange::write(std::string data) {
    if (data.empty() || traits_.is_head) return;
    std::string bytes = traits_.can_chunk ? chunk(data) : std::move(data);
    const std::size_t unsent = unsent_bytes_.fetch_add(bytes.size()) + bytes.size();
    const bool is_too_slow = unsent > connection_->state_.options.max_unsent_bytes;
    post([this, is_too_slow, bytes = std::move(bytes)]() mutable {
        if (is_too_slow) {
            connection_->state_.logger.warning(fmt::format(
                "{}: the reader is too slow, its stream is closed", traits_.request_id));
            connection_->lose_reader();
            return;
        }
        wrote_since_heartbeat_ = true;
        connection_->enqueue(std::move(bytes));
    });
}

void Exchange::end() {
    post([this] {
        is_complete_ = true;
        if (traits_.can_chunk) {
            unsent_bytes_.fetch_add(5);
            connection_->enqueue("0\r\n\r\n");
        } else if (!connection_->is_writing_) {
            connection_->finish_exchange();
        }
    });
}

void Exchange::on_disconnect(std::function<void()> callback) {
    asio::post(connection_->stream_.get_executor(),
               [self = shared_from_this(), callback = std::move(callback)]() mutable {
                   if (self->is_gone_)
                       callback();
                   else
                       self->disconnected_ = std::move(callback);
               });
}

void Exchange::reader_gone() {
    is_gone_ = true;
    const std::function<void()> callback = std::exchange(disconnected_, nullptr);
    if (callback) callback();
}

}  // namespace pagoda::http
