#pragma once
// PreTokenizer: cuts text into the words that merges never cross, by the rule that a GGUF file
// names. Rules are rows of a table (pre_tokenizer.cpp): passes, each a list of alternatives tried
// in order at every position; what no alternative matches is a piece of its own, and each pass
// cuts the pieces of the one before. Linear time, constant stack. Immutable and thread-safe.

#include <span>
#include <string>
#include <string_view>

#include "text/tokenize/char_scan.h"

namespace pagoda::text {

using PreStep = std::size_t (*)(CharScan&, std::size_t);

struct PrePass {
    std::span<const PreStep> steps;
};

struct PreRule {
    std::span<const PrePass> passes;
    bool is_byte_level = true;  // false: merges over characters, U+2581 or nothing for blanks
};

struct PreTokenizerEntry {
    std::string_view name;
    const PreRule* rule = nullptr;
    bool ignores_merges = false;  // a word that is a token is that token
    bool adds_bos = false;        // unless the file says otherwise
    bool escapes_spaces = false;  // " " is U+2581 in tokens (not byte-level)
};

// Receives the words in order.
class WordSink {
  public:
    virtual ~WordSink() = default;
    // false: stop.
    virtual bool word(std::string_view text) = 0;
};

// The entry of that name; an empty name is "default". Null when unknown.
[[nodiscard]] const PreTokenizerEntry* find_pre_tokenizer(std::string_view name);
// All names, for messages: "a, b, c".
[[nodiscard]] std::string pre_tokenizer_names();

// Cuts valid UTF-8. False when the sink stopped it.
bool split_words(const PreRule& rule, std::string_view text, WordSink& sink);

}  // namespace pagoda::text
