#pragma once
// Exchange: one request and the way back of its answer. The handler's side writes from any thread;
// all decisions fall on the connection's strand, in the order of the calls. Shared by whoever
// makes the answer and the connection, until one of them ends it. Internal to the server.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "serve/http/answer_head.h"
#include "serve/http/request_log.h"
#include "serve/http/response_writer.h"

namespace pagoda::http {

class Connection;

class Exchange final : public ResponseWriter, public std::enable_shared_from_this<Exchange> {
  public:
    Exchange(std::shared_ptr<Connection> connection, AnswerTraits traits, RequestRecord record);

    void send(Response response) override;
    void begin_stream(Response head) override;
    void write(std::string data) override;
    void end() override;
    void on_disconnect(std::function<void()> callback) override;

    // The handler gave up: 500 where no answer has begun, the end of a stream that has. Any thread.
    void fail();
    [[nodiscard]] const std::string& request_id() const { return traits_.request_id; }

    // For the connection, on its strand.
    [[nodiscard]] bool is_complete() const { return is_complete_; }
    [[nodiscard]] bool keep_alive() const { return traits_.keep_alive; }
    void count_written(std::size_t bytes);
    // A comment, unless something was written since the last one.
    void beat();
    // The answer is out.
    void finished();
    // The connection is no longer there. The status is for the log.
    void lost(int status);

  private:
    void post(std::function<void()> action);
    // On the strand.
    void put(std::string bytes);
    void send_now(Response&& response);
    void end_now();
    [[nodiscard]] bool is_lagging(std::size_t left_standing);
    [[nodiscard]] std::string framed(std::string data) const;

    // Owned by the exchange as by its own pending operations; closing it ends the latter.
    const std::shared_ptr<Connection> connection_;
    AnswerTraits traits_;
    // What was given and is not written: by write() counted where it is given, else on the strand.
    std::atomic<std::size_t> unsent_bytes_{0};
    // When the reader fell more than max_unsent_bytes behind. By write(), whose calls are ordered.
    std::optional<std::chrono::steady_clock::time_point> behind_since_;
    // On the strand.
    RequestRecord record_;
    std::function<void()> disconnected_;
    bool has_begun_ = false;
    bool is_complete_ = false;  // nothing more will come
    bool is_gone_ = false;
    bool wrote_since_heartbeat_ = false;
};

}  // namespace pagoda::http
