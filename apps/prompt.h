#pragma once
// From what a user gave to the ids of a prompt. Pure.

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace pagoda::apps {

// {"role": ROLE, "content": CONTENT}
[[nodiscard]] base::Json chat_message(std::string_view role, std::string_view content);

// The messages through the template; the text is tokenised as it is, no token is added.
[[nodiscard]] base::Result<std::vector<base::TokenId>> chat_prompt(
    const text::Tokenizer& tokenizer, const text::ChatTemplate& chat_template,
    const base::Json& messages);

// "1 2 3", separated by blanks, line ends or commas. Errors name the word and the vocabulary.
[[nodiscard]] base::Result<std::vector<base::TokenId>> parse_ids(std::string_view text,
                                                                 std::int64_t vocab_size);

}  // namespace pagoda::apps
