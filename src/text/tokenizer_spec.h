#pragma once
// TokenizerSpec: everything a tokenizer is made from, filled by formats (GGUF keys
// tokenizer.ggml.*, later tokenizer.json) and by tests. Plain data; ids are indices of `tokens`.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"

namespace pagoda::text {

enum class TokenizerKind {
    kByteLevelBpe,      // GPT-2 kind: merges over byte-mapped characters ("gpt2")
    kSentencePieceBpe,  // scores, byte fallback ("llama")
    kUnigram,           // Viterbi over scores ("t5")
    kWordPiece,         // BERT ("bert")
};

// GGUF's token types, same numbers.
enum class TokenType : std::uint8_t {
    kNormal = 1,
    kUnknown = 2,
    kControl = 3,
    kUserDefined = 4,
    kUnused = 5,
    kByte = 6,
};

struct TokenizerSpec {
    TokenizerKind kind = TokenizerKind::kByteLevelBpe;
    std::string pre_tokenizer;  // the rule's GGUF name ("llama-bpe", "qwen2", ...); may be empty
    std::vector<std::string> tokens;
    std::vector<TokenType> types;     // as many as tokens, or empty: all normal
    std::vector<float> scores;        // as many as tokens, or empty
    std::vector<std::string> merges;  // "left right", best first
    std::optional<base::TokenId> bos, eos, eot, unk, sep, pad, cls, mask;
    std::vector<base::TokenId> extra_eog;  // further ids that end generation
    // Special tokens that take with them the white space before (lstrip) or after (rstrip) them.
    std::vector<base::TokenId> lstrip, rstrip;
    std::optional<bool> add_bos, add_eos, add_space_prefix, remove_extra_whitespaces;
    // WordPiece's cleaning; lowercase is usual, and accents go where it is on.
    std::optional<bool> lowercase, strip_accents;
    std::string precompiled_charsmap;  // sentencepiece normaliser, empty when absent
    std::string chat_template;         // Jinja source, empty when absent
    std::vector<std::pair<std::string, std::string>> named_chat_templates;  // e.g. "tool_use"
};

}  // namespace pagoda::text
