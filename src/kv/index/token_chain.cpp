#include "kv/index/token_chain.h"

#include <cstring>

#include "base/check.h"

namespace pagoda::kv {

namespace {

// A length before each field: nothing runs into its neighbour.
void append_field(std::string& bytes, char tag, std::string_view value) {
    const std::uint64_t size = value.size();
    bytes.push_back(tag);
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes.append(value);
}

}  // namespace

std::string scope_bytes(const PrefixScope& scope) {
    std::string bytes;
    append_field(bytes, 'm', scope.model);
    append_field(bytes, 'a', scope.adapter);
    append_field(bytes, 'c',
                 {reinterpret_cast<const char*>(&scope.client.value), sizeof(scope.client.value)});
    append_field(bytes, 's', scope.salt);
    return bytes;
}

base::Hash128 PrefixHasher::root(std::string_view scope) const {
    return base::hash128(scope, key_);
}

base::Hash128 PrefixHasher::next(const base::Hash128& before, const BlockTokens& tokens) const {
    std::array<std::byte, sizeof(before) + sizeof(tokens)> bytes;
    std::memcpy(bytes.data(), &before, sizeof(before));
    std::memcpy(bytes.data() + sizeof(before), tokens.data(), sizeof(tokens));
    return base::hash128(bytes, key_);
}

PromptKeys PrefixHasher::keys(std::string scope,
                              std::shared_ptr<const std::vector<base::TokenId>> tokens) const {
    PromptKeys keys;
    keys.root = root(scope);
    keys.scope = std::move(scope);
    keys.tokens = std::move(tokens);
    keys.blocks.reserve(keys.tokens->size() / kBlockTokens);
    base::Hash128 last = keys.root;
    for (std::size_t end = kBlockTokens; end <= keys.tokens->size(); end += kBlockTokens) {
        BlockTokens block;
        std::memcpy(block.data(), keys.tokens->data() + end - kBlockTokens, sizeof(block));
        last = next(last, block);
        keys.blocks.push_back(last);
    }
    return keys;
}

void TokenChain::append(base::TokenId token, const PrefixHasher& hasher) {
    output_.push_back(token);
    if (num_tokens() % kBlockTokens != 0) return;
    const std::int64_t index = num_full_blocks();
    output_hashes_.push_back(
        hasher.next(index == 0 ? prompt_->root : hash(index - 1), block(index)));
}

const base::Hash128& TokenChain::hash(std::int64_t index) const {
    CHECK(index >= 0 && index < num_full_blocks(), "the block is not full");
    const std::int64_t of_prompt = std::ssize(prompt_->blocks);
    return index < of_prompt ? prompt_->blocks[static_cast<std::size_t>(index)]
                             : output_hashes_[static_cast<std::size_t>(index - of_prompt)];
}

base::TokenId TokenChain::token(std::int64_t position) const {
    const std::int64_t of_prompt = std::ssize(*prompt_->tokens);
    return position < of_prompt ? (*prompt_->tokens)[static_cast<std::size_t>(position)]
                                : output_[static_cast<std::size_t>(position - of_prompt)];
}

BlockTokens TokenChain::block(std::int64_t index) const {
    BlockTokens tokens{};
    const std::int64_t first = index * kBlockTokens;
    const std::int64_t count = std::min(kBlockTokens, num_tokens() - first);
    for (std::int64_t i = 0; i < count; ++i) tokens[static_cast<std::size_t>(i)] = token(first + i);
    return tokens;
}

std::int64_t TokenChain::num_common(std::int64_t index, const BlockTokens& tokens,
                                    std::int64_t count) const {
    const std::int64_t first = index * kBlockTokens;
    for (std::int64_t i = 0; i < count; ++i) {
        if (token(first + i) != tokens[static_cast<std::size_t>(i)]) return i;
    }
    return count;
}

}  // namespace pagoda::kv
