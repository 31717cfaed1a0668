// WordPiece as GGUF files carry it: text is cleaned and cut into words; a word begins with U+2581
// and is spelled by the longest tokens from the left, or is the unknown token.

#include <array>

#include <fmt/core.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "text/tokenize/byte_trie.h"
#include "text/tokenize/char_scan.h"
#include "text/tokenize/token_model.h"

namespace pagoda::text {
namespace {

bool is_cjk(char32_t code) {
    return (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) ||
           (code >= 0x20000 && code <= 0x2A6DF) || (code >= 0x2A700 && code <= 0x2B73F) ||
           (code >= 0x2B740 && code <= 0x2B81F) || (code >= 0x2B920 && code <= 0x2CEAF) ||
           (code >= 0xF900 && code <= 0xFAFF) || (code >= 0x2F800 && code <= 0x2FA1F);
}

class WordPieceModel final : public TokenModel {
  public:
    WordPieceModel(const ModelInput& input, std::size_t token_bytes)
        : spec_(input.spec),
          pieces_(token_bytes),
          lowers_(input.spec.lowercase.value_or(true)),
          strips_(input.spec.strip_accents.value_or(lowers_)) {
        for (std::size_t i = 0; i < spec_.tokens.size(); ++i) {
            const auto id = static_cast<base::TokenId>(i);
            if (type_of(spec_, id) == TokenType::kNormal) pieces_.insert(spec_.tokens[i], id);
        }
    }

    bool encode(std::string_view text, EncodeState& state) const override {
        std::string word(kSpaceMark);
        const auto end_word = [&] {
            if (word.size() > kSpaceMark.size()) append_word(word, state.ids);
            word = kSpaceMark;
        };
        const CharTable& table = CharTable::instance();
        while (!text.empty()) {
            const ScanChar whole = read_valid_utf8(table, text.data());
            text.remove_prefix(whole.bytes);
            if (!state.go_on(whole.bytes)) return false;
            std::array<utf8proc_int32_t, kMaxParts> parts{};
            const std::size_t count = decompose(whole.code, parts);
            for (std::size_t i = 0; i < count; ++i) {
                const auto code = static_cast<char32_t>(parts[i]);
                const CharMask mask = table[code];
                if ((mask & kSpace) != 0) {
                    end_word();
                    continue;
                }
                if (is_dropped(code, mask)) continue;
                const bool is_alone = stands_alone(code, mask);
                if (is_alone) end_word();
                base::append_utf8(word, lowers_ ? lower(code) : code);
                if (is_alone) end_word();
            }
        }
        end_word();
        return true;
    }

  private:
    static constexpr std::size_t kMaxParts = 32;

    // The canonical decomposition where accents are stripped, else the character itself.
    [[nodiscard]] std::size_t decompose(char32_t code,
                                        std::array<utf8proc_int32_t, kMaxParts>& parts) const {
        parts[0] = static_cast<utf8proc_int32_t>(code);
        if (!strips_ || code < 0x80) return 1;
        int boundary = 0;
        const utf8proc_ssize_t count =
            utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), parts.data(), kMaxParts,
                                    UTF8PROC_DECOMPOSE, &boundary);
        if (count >= 1 && static_cast<std::size_t>(count) <= kMaxParts) {
            return static_cast<std::size_t>(count);
        }
        parts[0] = static_cast<utf8proc_int32_t>(code);
        return 1;
    }
    [[nodiscard]] bool is_dropped(char32_t code, CharMask mask) const {
        return code == 0 || code == 0xFFFD || (mask & kFormatOrControl) != 0 ||
               (strips_ && (mask & kMark) != 0);
    }
    static bool stands_alone(char32_t code, CharMask mask) {
        return (mask & kPunct) != 0 || (code < 0x7F && (mask & kSymbol) != 0) || is_cjk(code);
    }
    static char32_t lower(char32_t code) {
        return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
    }

    void append_word(std::string_view word, std::vector<base::TokenId>& ids) const {
        const std::size_t before = ids.size();
        while (!word.empty()) {
            const ByteTrie::Match match = pieces_.longest_prefix(word);
            if (match.id == kNoToken) {
                ids.resize(before);
                ids.push_back(*spec_.unk);
                return;
            }
            ids.push_back(match.id);
            word.remove_prefix(match.bytes);
        }
    }

    const TokenizerSpec& spec_;  // the tokenizer's, which owns this model
    ByteTrie pieces_;
    bool lowers_;
    bool strips_;
};

}  // namespace

base::Result<std::unique_ptr<TokenModel>> make_wordpiece(const ModelInput& input) {
    if (!input.spec.unk) return base::invalid("a WordPiece vocabulary needs an unknown token");
    std::size_t token_bytes = 0;
    for (const std::string& token : input.spec.tokens) token_bytes += token.size();
    if (token_bytes > ByteTrie::kMaxKeyBytes) {
        return base::invalid(fmt::format("the token texts are {} bytes, at most {} are taken",
                                         token_bytes, ByteTrie::kMaxKeyBytes));
    }
    return std::unique_ptr<TokenModel>(std::make_unique<WordPieceModel>(input, token_bytes));
}

}  // namespace pagoda::text
