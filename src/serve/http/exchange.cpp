#include "serve/http/exchange.h"

#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/core.h>

#include "serve/http/connection.h"

namespace pagoda::http {
namespace {

constexpr std::string_view kHeartbeat = ": heartbeat\n\n";

ErrorBody handler_fault() {
    return {.status = 500,
            .message = "the server failed to handle this request",
            .code = "internal_error"};
}

}  // namespace

Exchange::Exchange(std::shared_ptr<Connection> connection, AnswerTraits traits,
                   RequestRecord record)
    : connection_(std::move(connection)), traits_(std::move(traits)), record_(std::move(record)) {
    record_.id = traits_.request_id;
}

void Exchange::post(std::function<void()> action) {
    boost::asio::post(
        connection_->executor(),
        connection_->guarded([self = shared_from_this(), action = std::move(action)](Connection&) {
            if (!self->is_gone_) action();
        }));
}

void Exchange::put(std::string bytes) {
    unsent_bytes_.fetch_add(bytes.size());
    connection_->enqueue(std::move(bytes));
}

std::string Exchange::framed(std::string data) const {
    return traits_.can_chunk ? chunk_of(data) : std::move(data);
}

void Exchange::send(Response response) {
    post([this, response = std::move(response)]() mutable { send_now(std::move(response)); });
}

void Exchange::send_now(Response&& response) {
    if (has_begun_) {
        connection_->logger().error(
            fmt::format("{}: a second answer was dropped", traits_.request_id));
        return;
    }
    has_begun_ = is_complete_ = true;
    record_.status = response.status;
    std::string bytes = answer_head(response, traits_, AnswerKind::kWhole);
    if (!traits_.is_head) bytes += response.body;
    put(std::move(bytes));
}

void Exchange::begin_stream(Response head) {
    post([this, head = std::move(head)] {
        if (std::exchange(has_begun_, true)) return;
        record_.status = head.status;
        std::string bytes = answer_head(head, traits_, AnswerKind::kStream);
        if (!traits_.can_chunk) traits_.keep_alive = false;
        put(std::move(bytes));
        if (!traits_.is_head) connection_->arm_heartbeat();
    });
}

void Exchange::write(std::string data) {
    if (data.empty() || traits_.is_head) return;
    std::string bytes = framed(std::move(data));
    const std::size_t left_standing = unsent_bytes_.fetch_add(bytes.size());
    const bool is_too_slow = is_lagging(left_standing);
    post([this, is_too_slow, bytes = std::move(bytes)]() mutable {
        if (is_complete_) {
            unsent_bytes_.fetch_sub(bytes.size());
            return;
        }
        if (is_too_slow) {
            connection_->logger().warning(fmt::format(
                "{}: the reader is too slow, its stream is closed", traits_.request_id));
            connection_->lose_reader(kReaderLeft);
            return;
        }
        wrote_since_heartbeat_ = true;
        connection_->enqueue(std::move(bytes));
    });
}

// What is written may come in bursts that no reader takes at once: it has the time that a stuck one
// has to come back below the limit.
bool Exchange::is_lagging(std::size_t left_standing) {
    if (left_standing <= connection_->options().max_unsent_bytes) {
        behind_since_.reset();
        return false;
    }
    const auto now = std::chrono::steady_clock::now();
    if (!behind_since_) behind_since_ = now;
    return now - *behind_since_ >= connection_->options().idle_timeout;
}

void Exchange::end() {
    post([this] { end_now(); });
}

void Exchange::end_now() {
    if (std::exchange(is_complete_, true)) return;
    if (traits_.can_chunk && !traits_.is_head) {
        put(std::string(kLastChunk));
    } else {
        connection_->finish_if_written();
    }
}

void Exchange::fail() {
    post([this] {
        if (!has_begun_) {
            send_now(error_response(handler_fault()));
        } else if (!is_complete_) {
            if (!traits_.is_head) put(framed(sse_data(error_json(handler_fault()))));
            end_now();
        }
    });
}

void Exchange::on_disconnect(std::function<void()> callback) {
    boost::asio::post(connection_->executor(),
                      connection_->guarded([self = shared_from_this(),
                                            callback = std::move(callback)](Connection&) mutable {
                          if (self->is_gone_)
                              callback();
                          else
                              self->disconnected_ = std::move(callback);
                      }));
}

void Exchange::count_written(std::size_t bytes) {
    unsent_bytes_.fetch_sub(bytes);
    record_.bytes += bytes;
}

void Exchange::beat() {
    if (is_complete_ || std::exchange(wrote_since_heartbeat_, false)) return;
    put(framed(std::string(kHeartbeat)));
}

void Exchange::finished() {
    disconnected_ = nullptr;
    log_request(connection_->logger(), record_);
}

void Exchange::lost(int status) {
    is_gone_ = true;
    record_.status = status;
    const std::function<void()> callback = std::exchange(disconnected_, nullptr);
    if (callback) callback();
    log_request(connection_->logger(), record_);
}

}  // namespace pagoda::http
