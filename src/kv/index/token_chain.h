#pragma once
// TokenChain: the tokens of one sequence as the prefix index sees them, in blocks of 32, each with
// a hash that covers all tokens before it and whose they are. Hashes are keyed, so that nobody can
// prepare collisions, and are found once: those of the prompt by whoever submits it, on its own
// thread, those of the output as it grows. They only lead to candidates: the index compares tokens.
// PromptKeys and PrefixHasher are immutable; a TokenChain belongs to one sequence, engine thread.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "kv/index/block_pool.h"

namespace pagoda::kv {

using BlockTokens = std::array<base::TokenId, kBlockTokens>;

// A prompt, ready for the index.
struct PromptKeys {
    // Who may share it: model, adapter, client and salt, each under a tag of its own (see
    // prefix_scope). Equal bytes or no hit.
    std::string scope;
    // Owners: the sequences of the request, and whatever else needs the prompt.
    std::shared_ptr<const std::vector<base::TokenId>> tokens;
    base::Hash128 root;                 // of the scope
    std::vector<base::Hash128> blocks;  // of the full blocks

    [[nodiscard]] std::int64_t bytes() const {
        return static_cast<std::int64_t>(scope.size() + blocks.size() * sizeof(base::Hash128));
    }
};

struct PrefixScope {
    std::string_view model;
    std::string_view adapter;
    base::ClientId client;
    std::string_view salt;
};
// Different fields never give equal bytes.
[[nodiscard]] std::string scope_bytes(const PrefixScope& scope);

class PrefixHasher final {
  public:
    explicit PrefixHasher(const base::HashKey& key) : key_(key) {}

    [[nodiscard]] base::Hash128 root(std::string_view scope) const;
    [[nodiscard]] base::Hash128 next(const base::Hash128& before, const BlockTokens& tokens) const;
    [[nodiscard]] PromptKeys keys(std::string scope,
                                  std::shared_ptr<const std::vector<base::TokenId>> tokens) const;

  private:
    base::HashKey key_;
};

class TokenChain final {
  public:
    explicit TokenChain(std::shared_ptr<const PromptKeys> prompt) : prompt_(std::move(prompt)) {}

    void append(base::TokenId token, const PrefixHasher& hasher);

    [[nodiscard]] std::int64_t num_tokens() const {
        return std::ssize(*prompt_->tokens) + std::ssize(output_);
    }
    [[nodiscard]] std::int64_t num_full_blocks() const {
        return std::ssize(prompt_->blocks) + std::ssize(output_hashes_);
    }
    // REQUIRES: index < num_full_blocks()
    [[nodiscard]] const base::Hash128& hash(std::int64_t index) const;
    // Positions [32 index, 32 index + 32); zeros beyond the last token.
    [[nodiscard]] BlockTokens block(std::int64_t index) const;
    // How many of the first `count` tokens of block `index` equal `tokens`, up to the first that
    // does not. REQUIRES: the chain has them.
    [[nodiscard]] std::int64_t num_common(std::int64_t index, const BlockTokens& tokens,
                                          std::int64_t count) const;
    [[nodiscard]] const PromptKeys& prompt() const { return *prompt_; }

  private:
    [[nodiscard]] base::TokenId token(std::int64_t position) const;

    std::shared_ptr<const PromptKeys> prompt_;  // owners: the sequences of the request
    std::vector<base::TokenId> output_;
    std::vector<base::Hash128> output_hashes_;  // of the full blocks beyond the prompt's
};

}  // namespace pagoda::kv
