#include "decode/token_history.h"

namespace pagoda::decode {

TokenHistory::Entry& TokenHistory::entry_of(base::TokenId token) {
    const auto [found, is_new] = index_.try_emplace(token, entries_.size());
    if (is_new) entries_.push_back({.token = token});
    return entries_[found->second];
}

void TokenHistory::add_prompt(std::span<const base::TokenId> tokens) {
    for (const base::TokenId token : tokens) entry_of(token).in_prompt = true;
}

void TokenHistory::add_output(base::TokenId token) {
    ++entry_of(token).output_count;
}

}  // namespace pagoda::decode
