#pragma once
// Detokenizer: ids of one growing output to text, in chunks that never split a character and join
// to exactly the whole decode. Bad bytes become U+FFFD; an unfinished tail is flushed once by
// finish(). Owned by one thread; the tokenizer must outlive it.

#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "text/tokenizer.h"

namespace pagoda::text {

// The last token of a prompt that shows in a text, alone; empty where none does. It decides about
// the first space of what follows.
[[nodiscard]] std::vector<base::TokenId> visible_tail(const Tokenizer& tokenizer,
                                                      std::span<const base::TokenId> prompt,
                                                      bool skip_special);

class Detokenizer {
  public:
    // skip_special: control tokens are left out of the text. prompt_tail: visible_tail() of what
    // comes before the output, so that a leading space is kept or dropped as in one decode of all.
    Detokenizer(const Tokenizer& tokenizer, bool skip_special,
                const std::vector<base::TokenId>& prompt_tail = {});

    // The text that became certain with this token; always valid UTF-8, often empty.
    [[nodiscard]] std::string append(base::TokenId id);
    // What was held back.
    [[nodiscard]] std::string finish();

  private:
    const Tokenizer& tokenizer_;  // outlives this object
    bool skip_special_;
    bool at_start_;        // no visible byte yet
    std::string pending_;  // bytes that may begin a character
};

}  // namespace pagoda::text
