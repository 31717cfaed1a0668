#include "text/tokenize/special_tokens.h"

#include <algorithm>
#include <map>

namespace pagoda::text {
namespace {

bool is_partitioned(TokenType type) {
    return type == TokenType::kControl || type == TokenType::kUserDefined ||
           type == TokenType::kUnknown;
}

// Names under which models know the end of a turn or text. A model may have several.
constexpr std::string_view kEndNames[] = {
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|eot|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end_of_turn|>",
    "<|END_OF_TURN_TOKEN|>",
    "<end_of_turn>",
    "<turn|>",
    "<|tool_response>",
    "<end_of_utterance>",
    "<eos>",
    "</s>",
    "<EOT>",
    "_<EOT>",
    "\u2581<EOT>",
    "[EOT]",
    "[EOS]",
    "[e~[",
    "<\uFF5Cend\u2581of\u2581sentence\uFF5C>",  // DeepSeek's, with wide bars
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
};

// In these vocabularies the first name only closes a part of the answer.
struct Exception {
    std::string_view name;
    std::string_view unless;  // a token of this name is there
};
constexpr Exception kExceptions[] = {
    {"<|end|>", "<|return|>"},     // one message of an answer in channels
    {"<|end|>", "<|flush|>"},      // the same in another family
    {"</s>", "<|tool_response>"},  // text like HTML's
};

}  // namespace

std::size_t SpecialTokens::key_bytes(const TokenizerSpec& spec) {
    std::size_t total = 0;
    for (std::size_t i = 0; i < spec.types.size(); ++i) {
        if (is_partitioned(spec.types[i])) total += spec.tokens[i].size();
    }
    return total;
}

void SpecialTokens::Set::insert(std::string_view text, base::TokenId id) {
    if (text.empty()) return;
    trie.insert(text, id);
    first_bytes.set(static_cast<unsigned char>(text.front()));
}

SpecialTokens::SpecialTokens(const TokenizerSpec& spec)
    : all_(key_bytes(spec)), user_defined_(key_bytes(spec)) {
    for (std::size_t i = 0; i < spec.types.size(); ++i) {
        if (!is_partitioned(spec.types[i])) continue;
        const auto id = static_cast<base::TokenId>(i);
        all_.insert(spec.tokens[i], id);
        if (spec.types[i] == TokenType::kUserDefined) user_defined_.insert(spec.tokens[i], id);
    }
}

SpecialTokens::Match SpecialTokens::next(std::string_view text, std::size_t from,
                                         bool with_control) const {
    const Set& set = with_control ? all_ : user_defined_;
    if (set.trie.empty()) return {text.size(), 0, kNoToken};
    for (std::size_t pos = from; pos < text.size(); ++pos) {
        if (!set.first_bytes[static_cast<unsigned char>(text[pos])]) continue;
        const ByteTrie::Match match = set.trie.longest_prefix(text.substr(pos));
        if (match.id != kNoToken) return {pos, match.bytes, match.id};
    }
    return {text.size(), 0, kNoToken};
}

std::vector<base::TokenId> end_of_generation(TokenizerSpec& spec) {
    std::vector<base::TokenId> ids = spec.extra_eog;
    if (spec.eos) ids.push_back(*spec.eos);
    if (spec.eot) ids.push_back(*spec.eot);

    std::map<std::string_view, base::TokenId> named;
    for (std::size_t i = 0; i < spec.types.size(); ++i) {
        const TokenType type = spec.types[i];
        if (type != TokenType::kControl && type != TokenType::kUserDefined) continue;
        const std::string_view text = spec.tokens[i];
        if (std::find(std::begin(kEndNames), std::end(kEndNames), text) != std::end(kEndNames)) {
            named.emplace(text, static_cast<base::TokenId>(i));
        }
    }
    for (const auto& [name, id] : named) {
        const bool is_excepted = std::any_of(std::begin(kExceptions), std::end(kExceptions),
                                             [&, text = name](const Exception& e) {
                                                 return e.name == text && named.contains(e.unless);
                                             });
        if (is_excepted) continue;
        ids.push_back(id);
        spec.types[static_cast<std::size_t>(id)] = TokenType::kControl;
    }
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    return ids;
}

}  // namespace pagoda::text
