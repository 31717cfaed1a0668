#pragma once
// What a load asks: prompts of random words, chats, or a recorded trace. A word of the texts is
// about one token in most vocabularies; what a prompt really had is in a server's `usage`. The same
// seed gives the same texts. One thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace pagoda::loadgen {

struct Message {
    std::string_view role;  // static
    std::string content;
};

// What one request asks.
struct Ask {
    std::size_t session = 0;  // whose answer it is
    std::vector<Message> messages;
    std::int64_t max_tokens = 0;
    // When it is sent, since the start, where the workload has times of its own.
    std::optional<base::Duration> at;
};

class Workload {
  public:
    virtual ~Workload() = default;
    // Nothing: there is no more.
    [[nodiscard]] virtual std::optional<Ask> next() = 0;
    // A session's answer has come; empty when it failed.
    virtual void answered(std::size_t session, std::string text) = 0;
};

struct PromptShape {
    std::int64_t prompt_tokens = 512;
    std::int64_t output_tokens = 128;
    // So many tokens at the beginning of every prompt are the same.
    std::int64_t shared_tokens = 0;
    // Lengths are log-normal around their means with this deviation of the logarithm; 0: all are
    // equal.
    double spread = 0;
};
[[nodiscard]] std::unique_ptr<Workload> prompts(const PromptShape& shape, std::uint64_t seed);

// Chats as a service sees them; the shape is that of published traces (ShareGPT, LMSYS-Chat-1M):
// system prompts shared by all chats of an application, applications by Zipf's law, a geometric
// number of turns, texts of log-normal length. Every turn sends all that was said. A new chat
// begins when none waits for its next turn.
struct ChatShape {
    std::int64_t num_applications = 8;
    std::int64_t system_tokens = 600;
    std::int64_t question_tokens = 60;
    std::int64_t answer_tokens = 150;
    double mean_turns = 5;
    double spread = 0.6;
};
[[nodiscard]] std::unique_ptr<Workload> chats(const ChatShape& shape, std::uint64_t seed);

// Requests with times: a line of JSON each, `timestamp` (ms), `input_length`, `output_length`
// (tokens) and optionally `hash_ids`, the identities of the prompt's blocks of 512 tokens, equal
// ones for equal beginnings (the format of the Mooncake traces). Errors name the line.
[[nodiscard]] base::Result<std::unique_ptr<Workload>> read_trace(std::string_view text);

}  // namespace pagoda::loadgen
