#pragma once
// TokenModel: what one kind of tokenizer does with a stretch of plain text between special tokens.
// Immutable after creation and thread-safe; borrows the vocabulary it was made from.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenize/encode_state.h"
#include "text/tokenizer_spec.h"

namespace pagoda::text {

class TokenModel {
  public:
    virtual ~TokenModel() = default;
    // Appends the ids of the text (valid UTF-8, not empty, between special tokens or the
    // ends of the whole) to state.ids. False when cancelled.
    virtual bool encode(std::string_view text, EncodeState& state) const = 0;
};

// The bytes each token stands for, in one block.
class TokenBytes {
  public:
    [[nodiscard]] std::string_view operator[](base::TokenId id) const {
        const std::size_t begin = ends_[static_cast<std::size_t>(id)];
        return std::string_view(bytes_).substr(begin,
                                               ends_[static_cast<std::size_t>(id) + 1] - begin);
    }
    [[nodiscard]] std::size_t total() const { return bytes_.size(); }
    [[nodiscard]] std::string& tail() { return bytes_; }
    void close_token() { ends_.push_back(bytes_.size()); }

  private:
    std::string bytes_;
    std::vector<std::size_t> ends_ = {0};
};

// What the makers below get: all outlive the model.
struct ModelInput {
    const TokenizerSpec& spec;
    const TokenBytes& bytes;
};

[[nodiscard]] base::Result<std::unique_ptr<TokenModel>> make_byte_level_bpe(
    const ModelInput& input);
[[nodiscard]] base::Result<std::unique_ptr<TokenModel>> make_sentencepiece_bpe(
    const ModelInput& input);
[[nodiscard]] base::Result<std::unique_ptr<TokenModel>> make_unigram(const ModelInput& input);
[[nodiscard]] base::Result<std::unique_ptr<TokenModel>> make_wordpiece(const ModelInput& input);

[[nodiscard]] inline TokenType type_of(const TokenizerSpec& spec, base::TokenId id) {
    return spec.types.empty() ? TokenType::kNormal : spec.types[static_cast<std::size_t>(id)];
}
// The byte that "<0x0A>" names, or -1.
[[nodiscard]] int byte_of_token_text(std::string_view text);

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

}  // namespace pagoda::text
