#pragma once
// KnownWords: remembers of each token whether its whole text, met as a word, is that one token
// after merging. Learnt on first use, so that most words cost one lookup. Any thread may ask and
// tell: an answer never changes, and losing one costs only the work to find it again.

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/ids.h"

namespace pagoda::text {

class KnownWords {
  public:
    enum class Answer : std::uint8_t { kUnknown, kYes, kNo };

    explicit KnownWords(std::size_t tokens) : answers_(new std::atomic<Answer>[tokens]()) {}

    [[nodiscard]] Answer is_one_token(base::TokenId id) const {
        return answers_[static_cast<std::size_t>(id)].load(std::memory_order_relaxed);
    }
    void learn(base::TokenId id, bool is_one) const {
        answers_[static_cast<std::size_t>(id)].store(is_one ? Answer::kYes : Answer::kNo,
                                                     std::memory_order_relaxed);
    }

  private:
    std::unique_ptr<std::atomic<Answer>[]> answers_;
};

}  // namespace pagoda::text
