#pragma once
// Tokenizer: text to ids and back, byte for byte as the model's own tokenizer does it. Linear time
// and constant stack on any input. Immutable after creation and thread-safe.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "text/tokenizer_spec.h"

namespace pagoda::text {

struct EncodeOptions {
    // Add BOS/EOS as the model asks for (spec), or force them on or off.
    enum class SpecialEnds { kModel, kNone, kForceBos } ends = SpecialEnds::kModel;
    // Text that spells a control token becomes that token; otherwise it is plain text.
    bool parse_special = true;
    // Checked now and then on long input; returning true gives up with kCancelled. May be null.
    bool (*is_cancelled)(void* context) = nullptr;
    void* cancel_context = nullptr;
};

class Tokenizer {
  public:
    // Errors: an unknown pre-tokenizer (names those that are known), contradictory sizes, ids out
    // of range, merges that name unknown tokens, an unusable charsmap.
    [[nodiscard]] static base::Result<std::unique_ptr<Tokenizer>> create(TokenizerSpec spec);
    virtual ~Tokenizer() = default;

    // Invalid UTF-8 is treated as the reference tokenizer does (each maximal bad part is U+FFFD).
    // Fails only when cancelled.
    [[nodiscard]] virtual base::Result<std::vector<base::TokenId>> encode(
        std::string_view text, const EncodeOptions& options) const = 0;

    // A text (valid UTF-8) has at least that many tokens, found at the speed of a read; 0 where
    // nothing can be told that fast, since tokens may stand for any length of text.
    [[nodiscard]] virtual std::int64_t least_tokens(std::string_view text) const = 0;

    // The raw bytes one token stands for in the middle of a text; may be part of a character.
    // Empty for control tokens when skip_special.
    [[nodiscard]] virtual std::string token_bytes(base::TokenId id, bool skip_special) const = 0;

    // The whole decode. May hold invalid UTF-8 when the ids do; see Detokenizer for streams.
    [[nodiscard]] virtual std::string decode(std::span<const base::TokenId> ids,
                                             bool skip_special) const = 0;

    [[nodiscard]] const TokenizerSpec& spec() const { return spec_; }
    [[nodiscard]] int vocab_size() const { return static_cast<int>(spec_.tokens.size()); }
    [[nodiscard]] bool is_special(base::TokenId id) const;  // control tokens
    // The token stops generation: EOS, EOT and further end tokens of the model.
    [[nodiscard]] bool is_end_of_generation(base::TokenId id) const;
    [[nodiscard]] std::span<const base::TokenId> end_of_generation_ids() const { return eog_; }
    [[nodiscard]] bool adds_bos() const;
    // True when decode drops one leading space of the whole text (sentencepiece kinds).
    [[nodiscard]] virtual bool strips_leading_space() const = 0;

  protected:
    explicit Tokenizer(TokenizerSpec spec);
    TokenizerSpec spec_;
    std::vector<base::TokenId> eog_;  // sorted
};

}  // namespace pagoda::text
