#include "sched/chat_trace_for_test.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pagoda::sched {

ChatTrace::ChatTrace(const ChatTraceShape& shape, unsigned seed) : shape_(shape), random_(seed) {
    for (std::int64_t i = 0; i < shape_.num_applications; ++i) {
        systems_.emplace_back();
        say(systems_.back(), length(shape_.system_tokens));
    }
}

// Log-normal, as lengths of texts are.
std::int64_t ChatTrace::length(std::int64_t mean) {
    constexpr double kSpread = 0.6;
    std::lognormal_distribution<double> factor(-kSpread * kSpread / 2, kSpread);
    return std::max<std::int64_t>(
        static_cast<std::int64_t>(static_cast<double>(mean) * factor(random_)), 1);
}

void ChatTrace::say(std::vector<base::TokenId>& tokens, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
        tokens.push_back(static_cast<base::TokenId>(random_() % 30'000));
}

void ChatTrace::open_sessions() {
    std::vector<double> popularity;
    for (std::size_t rank = 1; rank <= systems_.size(); ++rank)
        popularity.push_back(1.0 / static_cast<double>(rank));
    std::discrete_distribution<std::size_t> application(popularity.begin(), popularity.end());
    std::geometric_distribution<std::int64_t> more_turns(1.0 / shape_.mean_turns);
    const auto is_open = [](const Session& session) {
        return session.turns_left > 0 || session.is_waiting;
    };
    std::int64_t num_open = std::count_if(sessions_.begin(), sessions_.end(), is_open);
    for (; num_open < shape_.num_open && std::ssize(sessions_) < shape_.num_sessions; ++num_open)
        sessions_.push_back({systems_[application(random_)], 1 + more_turns(random_), false});
}

bool ChatTrace::next(Turn& turn) {
    open_sessions();
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
        if (sessions_[i].turns_left > 0 && !sessions_[i].is_waiting) ready.push_back(i);
    }
    if (ready.empty()) return false;
    turn.session = ready[random_() % ready.size()];
    Session& session = sessions_[turn.session];
    say(session.said, length(shape_.question_tokens));
    turn.prompt = session.said;
    turn.num_outputs = length(shape_.answer_tokens);
    session.is_waiting = true;
    --session.turns_left;
    return true;
}

void ChatTrace::answered(std::size_t session, std::vector<base::TokenId> said) {
    sessions_[session].said = std::move(said);
    sessions_[session].is_waiting = false;
}

}  // namespace pagoda::sched
