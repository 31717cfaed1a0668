#include "formats/token_strips.h"

#include <algorithm>
#include <array>
#include <string>

namespace pagoda::formats {
namespace {

using base::TokenId;
using text::TokenizerSpec;
using text::TokenType;

// In these vocabularies the mask token belongs to the word before it.
constexpr std::array<std::string_view, 3> kMaskPreTokenizers{"jina-v2-de", "jina-v2-es",
                                                             "jina-v2-code"};
constexpr std::array<std::string_view, 2> kMaskArchitectures{"nomic-bert-moe", "jina-bert-v3"};
// Markers of Phi-3 take the line feed after them, but for these.
constexpr std::array<std::string_view, 3> kPhi3Plain{"<unk>", "<s>", "<|endoftext|>"};

template <std::size_t kCount>
bool is_any_of(std::string_view text, const std::array<std::string_view, kCount>& list) {
    return std::find(list.begin(), list.end(), text) != list.end();
}

std::string lowered(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

bool is_special(TokenType type) {
    return type == TokenType::kControl || type == TokenType::kUserDefined ||
           type == TokenType::kUnknown;
}

template <class Wanted>
void append_special(const TokenizerSpec& spec, std::vector<TokenId>& ids, Wanted is_wanted) {
    for (std::size_t id = 0; id < spec.types.size(); ++id)
        if (is_special(spec.types[id]) && is_wanted(spec.tokens[id]))
            ids.push_back(static_cast<TokenId>(id));
}

}  // namespace

void add_known_strips(TokenizerSpec& spec, std::string_view architecture, std::string_view name) {
    const std::string model = lowered(name);
    const auto is_named = [&](std::string_view part) {
        return model.find(part) != std::string::npos;
    };
    if (is_any_of(spec.pre_tokenizer, kMaskPreTokenizers) ||
        is_any_of(architecture, kMaskArchitectures)) {
        append_special(spec, spec.lstrip, [](std::string_view text) { return text == "<mask>"; });
    } else if (is_named("phi-3") || is_named("phi3")) {
        append_special(spec, spec.rstrip,
                       [](std::string_view text) { return !is_any_of(text, kPhi3Plain); });
    } else if (is_named("modern-bert")) {
        append_special(spec, spec.lstrip, [](std::string_view text) { return text == "[MASK]"; });
    }
}

}  // namespace pagoda::formats
