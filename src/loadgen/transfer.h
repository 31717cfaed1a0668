#pragma once
// Transfer: one request to a server and the sample that comes of it, as a handle of libcurl that
// the load's loop drives. It must not move while the loop has it. One thread.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "loadgen/sample.h"
#include "loadgen/sse_reader.h"
#include "loadgen/workload.h"

struct curl_slist;

namespace pagoda::loadgen {

// The server, and what every request to it says.
struct Target {
    std::string url;  // "http://host:8080"; a path is kept, a "/v1" at its end may be there
    std::string model;
    std::string api_key;      // empty: none
    bool is_chat = true;      // /v1/chat/completions; otherwise /v1/completions
    bool ignores_eos = true;  // answers have the length that was asked for
    double temperature = 0;
    base::Duration time_limit{};  // of one request; 0: none
};

// "http://host:8080/v1/models" for "models".
[[nodiscard]] std::string url_of(std::string_view base_url, std::string_view route);

class Transfer final {
  public:
    Transfer(const Target& target, const Ask& ask, base::TimePoint arrived_at,
             const base::Clock& clock);
    ~Transfer();
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    // A CURL*; its private pointer is this object.
    [[nodiscard]] void* handle() const { return handle_; }
    [[nodiscard]] std::size_t session() const { return session_; }
    [[nodiscard]] std::int64_t num_pieces() const { return num_pieces_; }
    // The transfer is over; `fault` is libcurl's word for why, empty when it ended well.
    [[nodiscard]] Sample finish(std::string_view fault);

  private:
    static std::size_t on_bytes(const char* bytes, std::size_t size, std::size_t count, void* self);
    std::size_t take(std::string_view bytes);
    void take_event(std::string_view data);
    void take_piece(std::string_view text);
    void take_refusal(std::string_view bytes);

    const base::Clock& clock_;
    std::size_t session_;
    std::string body_;
    void* handle_ = nullptr;
    curl_slist* headers_ = nullptr;
    SseReader reader_;
    Sample sample_;
    base::TimePoint last_piece_at_;
    std::int64_t num_pieces_ = 0;
    std::string refusal_;  // the body of an answer that is no stream, its beginning
    bool has_ended_ = false;
};

}  // namespace pagoda::loadgen
