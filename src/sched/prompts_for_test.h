#pragma once
// PromptSource: prompts that often begin as earlier ones did: of few phrases, or with all that an
// earlier sequence said, under one of three scopes. For tests and fuzzing; one thread.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kv/index/token_chain.h"

namespace pagoda::sched {

class PromptSource final {
  public:
    // A number in [low, high].
    using Choose = std::function<std::int64_t(std::int64_t low, std::int64_t high)>;
    PromptSource(std::shared_ptr<const kv::PrefixHasher> hasher, Choose choose)
        : hasher_(std::move(hasher)), choose_(std::move(choose)) {}

    [[nodiscard]] std::shared_ptr<const kv::PromptKeys> next(std::int64_t num_tokens);
    // What a sequence read and said.
    void remember(std::vector<base::TokenId> tokens);

  private:
    std::shared_ptr<const kv::PrefixHasher> hasher_;  // owners: its schedulers too
    Choose choose_;
    std::vector<std::vector<base::TokenId>> remembered_;
};

}  // namespace pagoda::sched
