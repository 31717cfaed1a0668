#pragma once
// ChatTrace: chats as a service sees them, as token ids. The shape is that of published traces
// (ShareGPT, LMSYS-Chat-1M, Mooncake): a few system prompts shared by all sessions of an
// application, Zipf-distributed over applications; turns with a geometric number and a mean of
// five; questions and answers of log-normal length; many sessions at once, their turns
// interleaved. The same seed gives the same trace. One thread.

#include <cstdint>
#include <random>
#include <vector>

#include "base/ids.h"

namespace pagoda::sched {

struct ChatTraceShape {
    std::int64_t num_sessions = 200;
    std::int64_t num_open = 16;  // sessions at once
    std::int64_t num_applications = 8;
    std::int64_t system_tokens = 600;
    std::int64_t question_tokens = 60;
    std::int64_t answer_tokens = 150;
    double mean_turns = 5;
};

class ChatTrace final {
  public:
    ChatTrace(const ChatTraceShape& shape, unsigned seed);

    struct Turn {
        std::size_t session = 0;
        std::vector<base::TokenId> prompt;  // all that was said, and the next question
        std::int64_t num_outputs = 0;
    };
    // False when every session has ended or waits for its answer.
    [[nodiscard]] bool next(Turn& turn);
    // The answer to a turn has come: the session goes on from it, or ends.
    void answered(std::size_t session, std::vector<base::TokenId> said);

  private:
    struct Session {
        std::vector<base::TokenId> said;
        std::int64_t turns_left = 0;
        bool is_waiting = false;  // for an answer
    };
    void open_sessions();
    [[nodiscard]] std::int64_t length(std::int64_t mean);
    void say(std::vector<base::TokenId>& tokens, std::int64_t count);

    ChatTraceShape shape_;
    std::mt19937 random_;
    std::vector<std::vector<base::TokenId>> systems_;
    std::vector<Session> sessions_;
};

}  // namespace pagoda::sched
