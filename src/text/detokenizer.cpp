#include "text/detokenizer.h"

#include "base/utf8.h"

namespace pagoda::text {

std::vector<base::TokenId> visible_tail(const Tokenizer& tokenizer,
                                        std::span<const base::TokenId> prompt, bool skip_special) {
    for (auto token = prompt.rbegin(); token != prompt.rend(); ++token) {
        if (!tokenizer.token_bytes(*token, skip_special).empty()) return {*token};
    }
    return {};
}

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool skip_special,
                         const std::vector<base::TokenId>& prompt_tail)
    : tokenizer_(tokenizer), skip_special_(skip_special), at_start_(true) {
    for (const base::TokenId id : prompt_tail) {
        if (!tokenizer_.token_bytes(id, skip_special_).empty()) at_start_ = false;
    }
}

std::string Detokenizer::append(base::TokenId id) {
    std::string bytes = tokenizer_.token_bytes(id, skip_special_);
    if (bytes.empty()) return {};
    const bool drops_space = at_start_ && bytes.front() == ' ' && tokenizer_.strips_leading_space();
    at_start_ = false;
    pending_.append(bytes, drops_space ? 1 : 0);
    const std::size_t complete = base::complete_utf8_prefix(pending_);
    std::string text = base::replace_invalid_utf8(std::string_view(pending_).substr(0, complete));
    pending_.erase(0, complete);
    return text;
}

std::string Detokenizer::finish() {
    std::string text = base::replace_invalid_utf8(pending_);
    pending_.clear();
    return text;
}

}  // namespace pagoda::text
