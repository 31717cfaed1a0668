#include "prompt.h"

#include "command.h"

namespace pagoda::apps {

base::Json chat_message(std::string_view role, std::string_view content) {
    base::Json message = base::Json::object();
    message.set("role", role);
    message.set("content", content);
    return message;
}

base::Result<std::vector<base::TokenId>> chat_prompt(const text::Tokenizer& tokenizer,
                                                     const text::ChatTemplate& chat_template,
                                                     const base::Json& messages) {
    text::ChatInput input{.messages = messages};
    input.use_tokens_of(tokenizer);
    const auto text = chat_template.render(std::move(input));
    if (!text) return text.error();
    return tokenizer.encode(*text, {.ends = text::EncodeOptions::SpecialEnds::kNone});
}

base::Result<std::vector<base::TokenId>> parse_ids(std::string_view text, std::int64_t vocab_size) {
    constexpr std::string_view kBetween = " \t\r\n,";
    std::vector<base::TokenId> ids;
    while (true) {
        const std::size_t begin = text.find_first_not_of(kBetween);
        if (begin == std::string_view::npos) return ids;
        text.remove_prefix(begin);
        const std::string_view word = text.substr(0, text.find_first_of(kBetween));
        const auto id = parse_integer("a token id", word, 0, vocab_size - 1);
        if (!id) return id.error();
        ids.push_back(static_cast<base::TokenId>(*id));
        text.remove_prefix(word.size());
    }
}

}  // namespace pagoda::apps
