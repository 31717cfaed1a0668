#include "serve/http/connection.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/http/read.hpp>
#include <fmt/core.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include "serve/http/request_head.h"

namespace pagoda::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
// How much of a refused body is read and thrown away, so that its sender gets to read the answer.
constexpr std::size_t kMaxLingerBytes = std::size_t{256} << 20;
constexpr std::chrono::seconds kMaxLingerTime{5};
constexpr std::chrono::milliseconds kCancelAgain{20};
// What is read at a time. Beside it the buffer holds one header, trailer or chunk's extensions.
constexpr std::size_t kReadBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxWriteBytes = std::size_t{256} << 10;
// In logs: the server ended before the answer did, or could not go on with it.
constexpr int kServerStopped = 503;
constexpr int kServerFailed = 500;

Response no_room_for_body(const BodyBudget& bodies) {
    return error_response(
        {.status = 503,
         .message = fmt::format("the bodies of other requests leave no room for this one, all "
                                "together may hold {} bytes; try again",
                                bodies.max_bytes()),
         .code = "server_overloaded"});
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket&& socket, ServerState& state)
    : stream_(std::move(socket)),
      state_(state),
      heartbeat_(stream_.get_executor()),
      deadline_(stream_.get_executor()),
      progress_(stream_.get_executor()),
      buffer_(state.options.max_header_bytes + kReadBytes) {
    state_.num_connections.fetch_add(1);
}

Connection::~Connection() {
    state_.num_connections.fetch_sub(1);
}

void Connection::start() {
    asio::post(executor(), guarded([](Connection& self) { self.wait_for_request(); }));
}

void Connection::stop() {
    asio::post(executor(), guarded([](Connection& self) { self.lose_reader(kServerStopped); }));
}

// A connection may idle between requests; once a request has begun, its header must come in time.
void Connection::wait_for_request() {
    if (is_closed_) return;
    if (state_.is_stopping.load()) {
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
                            guarded([](Connection& self, const Error& error, std::size_t bytes) {
                                if (error) {
                                    self.close();
                                    return;
                                }
                                self.buffer_.commit(bytes);
                                self.read_header();
                            }));
}

void Connection::read_header() {
    is_first_ = false;
    parser_.emplace();
    parser_->header_limit(state_.options.max_header_bytes);
    parser_->body_limit(boost::none);  // until its sender is known to be one who may ask
    incoming_.emplace();
    incoming_->traits.keep_alive = false;
    limit_reading(state_.options.header_timeout);
    beast::http::async_read_header(
        stream_, buffer_, *parser_,
        guarded([](Connection& self, const Error& error, std::size_t) { self.on_header(error); }));
}

void Connection::on_header(const Error& error) {
    end_deadline();
    if (is_closed_) return;
    if (error) {
        // As far as it came, for the log.
        Request head = read_head(parser_->get());
        incoming_->record.method = std::move(head.method);
        incoming_->record.path = std::move(head.path);
        refuse(error);
        return;
    }
    take_header();
    if (std::optional<Response> refusal = judge_header()) {
        refuse(std::move(*refusal));
        return;
    }
    if (parser_->is_done())
        dispatch();
    else if (waits_for_continue(parser_->get()))
        send_continue();
    else
        read_body();
}

void Connection::take_header() {
    IncomingRequest& incoming = *incoming_;
    Request& request = incoming.request;
    request = read_head(parser_->get());
    Error error;
    const auto peer = stream_.socket().remote_endpoint(error);
    if (!error) {
        request.remote_address = peer.address().to_string();
        request.is_loopback = peer.address().is_loopback();
    }
    const std::string* id = request.header("x-request-id");
    request.id = id != nullptr && RequestIds::is_sane(*id) ? *id : state_.ids.next();
    incoming.traits = {.request_id = request.id,
                       .keep_alive = parser_->keep_alive(),
                       .is_head = request.method == "HEAD",
                       .can_chunk = parser_->get().version() >= 11};
    incoming.record = {.method = request.method, .path = request.path};
    incoming.share = BodyBudget::Share(state_.bodies);
}

// Why the request is refused, if it is; else its route is known.
std::optional<Response> Connection::judge_header() {
    IncomingRequest& incoming = *incoming_;
    if (const auto fault = head_fault(incoming.request, parser_->get().version())) {
        // Where it ends is not sure, and so not where a next one begins.
        incoming.traits.keep_alive = false;
        return error_response(*fault);
    }
    Routing routing;
    try {
        routing = state_.router.admit(incoming.request);
    } catch (const std::exception& fault) {
        state_.logger.error(
            fmt::format("{}: a filter failed: {}", incoming.request.id, fault.what()));
        return error_response(
            {.status = 500, .message = "the server failed to look at this request"});
    }
    incoming.route = routing.route;
    incoming.record.is_quiet = routing.route != nullptr && routing.route->is_quiet;
    if (incoming.request.principal) incoming.record.client = incoming.request.principal->name;
    if (routing.refusal) return std::move(routing.refusal);
    const auto length = parser_->content_length();
    if (length && *length > state_.options.max_body_bytes)
        return error_response(too_large_body(state_.options));
    if (length && !state_.bodies.has_room(*length)) return no_room_for_body(state_.bodies);
    return std::nullopt;
}

void Connection::send_continue() {
    stream_.expires_after(state_.options.idle_timeout);
    asio::async_write(stream_, asio::buffer(kContinue),
                      guarded([](Connection& self, const Error& error, std::size_t) {
                          if (error)
                              self.close();
                          else if (!self.is_closed_)
                              self.read_body();
                      }));
}

void Connection::read_body() {
    parser_->eager(true);
    parser_->body_limit(state_.options.max_body_bytes);
    limit_reading(state_.options.idle_timeout);
    num_body_bytes_ = 0;
    on_body({});
}

// Piece by piece, each charged as it comes, and each earning time for the next.
void Connection::on_body(const Error& error) {
    if (is_closed_) return;
    const std::size_t size = parser_->get().body().size();
    read_until_ += (size - std::exchange(num_body_bytes_, size)) * kTimeForBodyByte;
    const bool is_over = error || is_late_ || parser_->is_done();
    if (!is_over && incoming_->share.grow_to(size)) {
        beast::http::async_read_some(stream_, buffer_, *parser_,
                                     guarded([](Connection& self, const Error& failure,
                                                std::size_t) { self.on_body(failure); }));
        return;
    }
    end_deadline();
    if (error || is_late_)
        refuse(error);
    else if (is_over && incoming_->share.grow_to(size))
        dispatch();
    else
        refuse(no_room_for_body(state_.bodies));
}

// The stream's own timer closes the socket, and with it the way to say why. This one ends the read
// alone.
void Connection::limit_reading(std::chrono::milliseconds limit) {
    stream_.expires_never();
    is_late_ = false;
    read_until_ = std::chrono::steady_clock::now() + limit;
    watch_deadline();
}

void Connection::watch_deadline() {
    deadline_.expires_at(read_until_);
    deadline_.async_wait(guarded([](Connection& self, const Error& error) {
        const auto now = std::chrono::steady_clock::now();
        // Called though the read has ended in the meantime: the deadline is another one then.
        if (error || self.deadline_.expiry() > now) return;
        if (self.read_until_ <= now) {
            self.is_late_ = true;
            self.stream_.cancel();
            // A read that is just between two pieces does not notice.
            self.read_until_ = now + kCancelAgain;
        }
        self.watch_deadline();
    }));
}

void Connection::end_deadline() {
    deadline_.expires_at(asio::steady_timer::time_point::max());
}

// The request can't be read on: its sender is told why, where there is one and it had begun.
void Connection::refuse(const Error& error) {
    std::optional<ErrorBody> failure;
    if (is_late_ && (!error || error == asio::error::operation_aborted)) {
        if (parser_->got_some() || buffer_.size() > 0)
            failure =
                lateness(parser_->is_header_done() ? RequestPart::kBody : RequestPart::kHeader,
                         state_.options);
    } else {
        failure = read_failure(error, state_.options);
    }
    if (failure)
        refuse(error_response(*failure));
    else
        close();
}

void Connection::refuse(Response&& response) {
    has_unread_body_ = !parser_->is_done();
    if (has_unread_body_) incoming_->traits.keep_alive = false;
    begin_exchange();
    incoming_.reset();
    exchange_->send(std::move(response));
}

void Connection::begin_exchange() {
    AnswerTraits& traits = incoming_->traits;
    if (traits.request_id.empty()) traits.request_id = state_.ids.next();
    if (state_.is_stopping.load()) traits.keep_alive = false;
    stream_.expires_never();
    parser_.reset();
    state_.begin_answer();
    exchange_ = std::make_shared<Exchange>(shared_from_this(), std::move(traits),
                                           std::move(incoming_->record));
}

void Connection::dispatch() {
    incoming_->request.body = std::move(parser_->get().body());
    begin_exchange();
    HandlerCall call{.route = incoming_->route,
                     .request = std::move(incoming_->request),
                     .share = std::move(incoming_->share),
                     .exchange = exchange_};
    incoming_.reset();
    watch_reader();
    const bool is_large = call.request.body.size() > kSmallBodyBytes;
    HandlerPool& pool = is_large ? state_.large_pool : state_.pool;
    if (call.route->is_immediate) {
        pool.run(std::move(call));
    } else if (!pool.try_push(std::move(call))) {
        if (state_.is_stopping.load()) return lose_reader(kServerStopped);
        exchange_->send(error_response(
            {.status = 503,
             .message = fmt::format("{} requests wait for a thread, the most allowed; try again",
                                    state_.options.max_waiting_handlers),
             .code = "server_overloaded"}));
    }
}

// Notices a reader that goes away while its answer is made.
void Connection::watch_reader() {
    stream_.socket().async_wait(
        asio::ip::tcp::socket::wait_read,
        guarded([watched = exchange_](Connection& self, const Error& error) {
            if (!error && self.exchange_ == watched) self.on_readable(watched);
        }));
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
    // The whole answer is being written: its last byte may be out, and who has it may leave before
    // this strand hears of that. The write tells.
    if (watched->is_complete()) return;
    if (exchange_ == watched) lose_reader(kReaderLeft);
}

void Connection::enqueue(std::string bytes) {
    if (is_closed_ || bytes.empty()) return;
    outgoing_.push_back(std::move(bytes));
    if (is_writing_) return;
    static_cast<void>(has_progress());
    watch_progress();
    write_next();
}

void Connection::write_next() {
    is_writing_ = true;
    const std::string& first = outgoing_.front();
    const std::size_t size = std::min(first.size() - num_written_, kMaxWriteBytes);
    stream_.async_write_some(asio::buffer(first.data() + num_written_, size),
                             guarded([](Connection& self, const Error& error, std::size_t bytes) {
                                 self.on_written(error, bytes);
                             }));
}

void Connection::on_written(const Error& error, std::size_t bytes) {
    is_writing_ = false;
    if (is_closed_) return;
    if (error) {
        lose_reader(kReaderLeft);
        return;
    }
    total_written_ += bytes;
    num_written_ += bytes;
    if (exchange_) exchange_->count_written(bytes);
    if (num_written_ == outgoing_.front().size()) {
        outgoing_.pop_front();
        num_written_ = 0;
    }
    if (!outgoing_.empty()) {
        write_next();
        return;
    }
    progress_.expires_at(asio::steady_timer::time_point::max());
    finish_if_written();
}

// A reader may be slow and must not stand still: it has idle_timeout from each byte it took to the
// next. Looked at once in that time, so that a stuck write ends within twice of it.
void Connection::watch_progress() {
    progress_.expires_after(state_.options.idle_timeout);
    progress_.async_wait(guarded([](Connection& self, const Error& error) {
        if (error || self.is_closed_ || self.progress_.expiry() > std::chrono::steady_clock::now())
            return;
        if (self.has_progress())
            self.watch_progress();
        else
            self.lose_reader(kReaderLeft);
    }));
}

// The reader's side took something since the last look. What the kernel accepted says little: it
// buffers megabytes and asks for more only when much of that is gone.
bool Connection::has_progress() {
    int unacknowledged = 0;
    if (ioctl(stream_.socket().native_handle(), SIOCOUTQ, &unacknowledged) != 0) unacknowledged = 0;
    const std::uint64_t now = total_written_ - static_cast<std::uint64_t>(unacknowledged);
    return std::exchange(acknowledged_, now) != now;
}

void Connection::finish_if_written() {
    if (!is_writing_ && outgoing_.empty() && exchange_ && exchange_->is_complete())
        finish_exchange();
}

void Connection::finish_exchange() {
    const bool keep_alive = exchange_->keep_alive() && !state_.is_stopping.load();
    heartbeat_.cancel();
    exchange_->finished();
    exchange_.reset();
    state_.end_answer();
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
    stream_.async_read_some(
        buffer_.prepare(kReadBytes),
        guarded([most_bytes](Connection& self, const Error& error, std::size_t bytes) {
            if (error || bytes >= most_bytes || self.is_closed_)
                self.close();
            else
                self.linger(most_bytes - bytes);
        }));
}

void Connection::lose_reader(int status) {
    const std::shared_ptr<Exchange> lost = std::exchange(exchange_, nullptr);
    close();
    if (!lost) return;
    state_.end_answer();
    lost->lost(status);
}

void Connection::fail(const std::exception& fault) {
    lose_reader(kServerFailed);
    state_.logger.error(fmt::format("a connection is closed: {}", fault.what()));
}

void Connection::close() {
    if (is_closed_) return;
    is_closed_ = true;
    heartbeat_.cancel();
    end_deadline();
    progress_.cancel();
    incoming_.reset();
    Error ignored;
    stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
    stream_.close();
    outgoing_.clear();  // after the close: until then a write may be reading from it
}

void Connection::arm_heartbeat() {
    heartbeat_.expires_after(state_.options.heartbeat);
    heartbeat_.async_wait(guarded([beating = exchange_](Connection& self, const Error& error) {
        if (error || self.exchange_ != beating || beating->is_complete()) return;
        beating->beat();
        self.arm_heartbeat();
    }));
}

}  // namespace pagoda::http
