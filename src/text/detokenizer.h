#pragma once
// Detokenizer: ids of one growing output to text, in chunks that never split a character and join
// to exactly the whole decode. Bad bytes become U+FFFD; an unfinished tail is flushed once by
// finish(). Owned by one thread; the tokenizer must outlive it.

#include <string>
#include <vector>

#include "base/ids.h"
#include "text/tokenizer.h"

namespace pagoda::text {

class Detokenizer {
  public:
    // skip_special: control tokens are left out of the text. prompt_tail: the last ids before the
    // output, so that a leading space is kept or dropped as in one decode of all; may be empty.
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
