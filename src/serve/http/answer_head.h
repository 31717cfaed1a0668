#pragma once
// The bytes of an answer: pure functions. Internal to the server.

#include <string>
#include <string_view>

#include "serve/http/message.h"

namespace pagoda::http {

// How an answer is written, as its request decides.
struct AnswerTraits {
    std::string request_id;
    bool keep_alive = true;
    bool is_head = false;    // HEAD: the head alone
    bool can_chunk = false;  // HTTP/1.1
};

enum class AnswerKind { kWhole, kStream };
// Status line and headers, the blank line included.
[[nodiscard]] std::string answer_head(const Response& response, const AnswerTraits& traits,
                                      AnswerKind kind);
// One chunk (RFC 9112, 7.1) of that data. REQUIRES: there is some, as an empty one ends a body.
[[nodiscard]] std::string chunk_of(std::string_view data);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace pagoda::http
