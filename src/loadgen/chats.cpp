#include <deque>
#include <unordered_map>
#include <utility>

#include "loadgen/random_text.h"
#include "loadgen/workload.h"

namespace pagoda::loadgen {
namespace {

class Chats final : public Workload {
  public:
    Chats(const ChatShape& shape, std::uint64_t seed) : shape_(shape), random_(seed) {
        for (std::int64_t i = 0; i < shape_.num_applications; ++i)
            systems_.push_back(random_text(random_, length(shape_.system_tokens)));
    }

    std::optional<Ask> next() override {
        if (ready_.empty()) open();
        const std::size_t session = ready_.front();
        ready_.pop_front();
        Chat& chat = chats_[session];
        --chat.turns_left;
        chat.said.push_back({"user", random_text(random_, length(shape_.question_tokens))});
        return Ask{
            .session = session, .messages = chat.said, .max_tokens = length(shape_.answer_tokens)};
    }

    void answered(std::size_t session, std::string text) override {
        Chat& chat = chats_[session];
        if (chat.turns_left <= 0 || text.empty()) {
            chats_.erase(session);
            return;
        }
        chat.said.push_back({"assistant", std::move(text)});
        ready_.push_back(session);
    }

  private:
    struct Chat {
        std::vector<Message> said;
        std::int64_t turns_left = 0;
    };

    std::int64_t length(std::int64_t mean) { return random_length(random_, mean, shape_.spread); }

    void open() {
        std::vector<double> popularity;
        for (std::size_t rank = 1; rank <= systems_.size(); ++rank)
            popularity.push_back(1.0 / static_cast<double>(rank));
        std::discrete_distribution<std::size_t> application(popularity.begin(), popularity.end());
        std::geometric_distribution<std::int64_t> more_turns(1.0 / shape_.mean_turns);
        Chat chat{.turns_left = 1 + more_turns(random_)};
        chat.said.push_back({"system", systems_[application(random_)]});
        chats_.emplace(num_sessions_, std::move(chat));
        ready_.push_back(num_sessions_++);
    }

    ChatShape shape_;
    Random random_;
    std::vector<std::string> systems_;
    std::unordered_map<std::size_t, Chat> chats_;
    std::deque<std::size_t> ready_;  // for their next turn
    std::size_t num_sessions_ = 0;
};

}  // namespace

std::unique_ptr<Workload> chats(const ChatShape& shape, std::uint64_t seed) {
    return std::make_unique<Chats>(shape, seed);
}

}  // namespace pagoda::loadgen
