#include "sched/prompts_for_test.h"

#include <algorithm>
#include <string>

namespace pagoda::sched {

std::shared_ptr<const kv::PromptKeys> PromptSource::next(std::int64_t num_tokens) {
    constexpr base::TokenId kPhraseTokens = 20;
    std::vector<base::TokenId> tokens;
    if (!remembered_.empty() && choose_(0, 2) == 0)
        tokens = remembered_[static_cast<std::size_t>(choose_(0, std::ssize(remembered_) - 1))];
    while (std::ssize(tokens) < num_tokens) {
        const auto phrase = static_cast<base::TokenId>(choose_(0, 7) == 0 ? 1 : 0);
        for (base::TokenId i = 0; i < kPhraseTokens; ++i) tokens.push_back(phrase * 500 + i);
    }
    tokens.resize(static_cast<std::size_t>(num_tokens));
    std::string scope = std::to_string(std::max<std::int64_t>(choose_(-6, 2), 0));
    return std::make_shared<const kv::PromptKeys>(hasher_->keys(
        std::move(scope), std::make_shared<const std::vector<base::TokenId>>(std::move(tokens))));
}

void PromptSource::remember(std::vector<base::TokenId> tokens) {
    if (remembered_.size() >= 8) remembered_.erase(remembered_.begin());
    remembered_.push_back(std::move(tokens));
}

}  // namespace pagoda::sched
