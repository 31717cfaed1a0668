#include "text/end_of_generation.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

namespace pagoda::text {
namespace {

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
    {"</s>", "<|tool_response>"},  // text like HTML's, here and in the next
    {"</s>", "<end_of_turn>"},
};

void sort_unique(std::vector<base::TokenId>& ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

bool is_end_name(std::string_view text) {
    return std::find(std::begin(kEndNames), std::end(kEndNames), text) != std::end(kEndNames);
}

}  // namespace

std::vector<base::TokenId> end_tokens_by_name(const TokenizerSpec& spec) {
    std::map<std::string_view, base::TokenId> named;
    for (std::size_t i = 0; i < spec.types.size(); ++i) {
        const TokenType type = spec.types[i];
        if (type != TokenType::kControl && type != TokenType::kUserDefined) continue;
        if (is_end_name(spec.tokens[i])) {
            named.emplace(spec.tokens[i], static_cast<base::TokenId>(i));
        }
    }
    std::vector<base::TokenId> ids;
    for (const auto& [name, id] : named) {
        const bool is_excepted = std::any_of(std::begin(kExceptions), std::end(kExceptions),
                                             [&, text = name](const Exception& e) {
                                                 return e.name == text && named.contains(e.unless);
                                             });
        if (!is_excepted) ids.push_back(id);
    }
    sort_unique(ids);
    return ids;
}

std::vector<base::TokenId> end_of_generation(const TokenizerSpec& spec) {
    std::vector<base::TokenId> ids = end_tokens_by_name(spec);
    ids.insert(ids.end(), spec.extra_eog.begin(), spec.extra_eog.end());
    if (spec.eos) ids.push_back(*spec.eos);
    if (spec.eot) ids.push_back(*spec.eot);
    sort_unique(ids);
    return ids;
}

}  // namespace pagoda::text
