// SentencePiece's byte-pair encoding: the pair whose joined text has the best score goes first;
// characters that the vocabulary lacks become byte tokens, or the unknown token.

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include <fmt/core.h>

#include "base/utf8.h"
#include "text/tokenize/char_scan.h"
#include "text/tokenize/known_words.h"
#include "text/tokenize/merge_loop.h"
#include "text/tokenize/token_map.h"
#include "text/tokenize/token_model.h"

namespace pagoda::text {
namespace {

// Pairs of neighbouring characters that occur inside some token. Between two others no merge can
// ever reach across, so a text is cut there and its parts are merged by themselves: the same
// result, in small pieces.
class CharPairs {
  public:
    explicit CharPairs(std::size_t token_bytes)
        : slots_(std::bit_ceil(token_bytes + token_bytes / 2 + 8), 0), mask_(slots_.size() - 1) {}

    void insert(char32_t left, char32_t right) {
        slots_[probe(pack(left, right))] = pack(left, right);
    }
    [[nodiscard]] bool contains(char32_t left, char32_t right) const {
        return slots_[probe(pack(left, right))] != 0;
    }

  private:
    // Never 0: 21 bits each, and one more that is always set.
    static std::uint64_t pack(char32_t left, char32_t right) {
        return std::uint64_t{1} << 63 | std::uint64_t{left} << 21 | right;
    }
    [[nodiscard]] std::size_t probe(std::uint64_t key) const {
        std::size_t at = mix_bits(key) & mask_;
        while (slots_[at] != 0 && slots_[at] != key) at = (at + 1) & mask_;
        return at;
    }
    std::vector<std::uint64_t> slots_;
    std::size_t mask_;
};

// Order so that a higher score is a lower number: the bits of a float, made monotonic.
std::uint32_t order_of_score(float score) {
    const auto bits = std::bit_cast<std::uint32_t>(score == 0.0F ? 0.0F : score);
    const bool is_negative = (bits >> 31) != 0;
    return is_negative ? bits : ~bits & 0x7FFFFFFFU;
}

class SentencePieceModel final : public TokenModel {
  public:
    explicit SentencePieceModel(const ModelInput& input)
        : spec_(input.spec),
          keys_(input.spec.tokens.size()),
          inner_(text_bytes(input.spec)),
          known_(input.spec.tokens.size()) {
        byte_ids_.fill(kNoToken);
        std::vector<char32_t> chars;
        for (std::size_t i = 0; i < spec_.tokens.size(); ++i) {
            const auto id = static_cast<base::TokenId>(i);
            const TokenType type = type_of(spec_, id);
            if (type == TokenType::kByte) {
                byte_ids_[static_cast<std::size_t>(byte_of_token_text(spec_.tokens[i]))] = id;
            }
            if (!is_piece(type)) continue;
            keys_.insert(spec_.tokens[i], id);
            has_unused_ = has_unused_ || type == TokenType::kUnused;
            add_pairs(spec_.tokens[i]);
        }
    }

    [[nodiscard]] base::Status check() const {
        if (spec_.scores.empty()) {
            return base::invalid("a SentencePiece vocabulary needs token scores, but has none");
        }
        const auto missing = std::find(byte_ids_.begin(), byte_ids_.end(), kNoToken);
        if (!spec_.unk && missing != byte_ids_.end()) {
            return base::invalid(
                fmt::format("the vocabulary has neither an unknown token nor one for byte 0x{:02X}",
                            missing - byte_ids_.begin()));
        }
        return {};
    }

    bool encode(std::string_view text, EncodeState& state) const override {
        std::string escaped;
        escaped.reserve(text.size() + text.size() / 2 + 3);
        if (spec_.add_space_prefix.value_or(true)) escaped += kSpaceMark;
        for (const char c : text) {
            if (c == ' ') {
                escaped += kSpaceMark;
            } else {
                escaped += c;
            }
        }
        const std::string_view whole = escaped;
        const CharTable& table = CharTable::instance();
        std::size_t begin = 0;
        char32_t before = 0;
        for (std::size_t pos = 0; pos < whole.size();) {
            const ScanChar c = read_valid_utf8(table, whole.data() + pos);
            if (pos > begin && !inner_.contains(before, c.code)) {
                if (!encode_word(whole.substr(begin, pos - begin), state)) return false;
                begin = pos;
            }
            before = c.code;
            pos += c.bytes;
        }
        return encode_word(whole.substr(begin), state);
    }

  private:
    static bool is_piece(TokenType type) {
        return type == TokenType::kNormal || type == TokenType::kUserDefined ||
               type == TokenType::kUnused;
    }
    static std::size_t text_bytes(const TokenizerSpec& spec) {
        std::size_t total = 0;
        for (const std::string& token : spec.tokens) total += token.size();
        return total;
    }
    void add_pairs(std::string_view token) {
        char32_t before = 0;
        for (bool is_first = true; !token.empty(); is_first = false) {
            const base::Utf8Char c = base::decode_utf8(token);
            if (!is_first) inner_.insert(before, c.code);
            before = c.code;
            token.remove_prefix(c.bytes);
        }
    }

    bool encode_word(std::string_view word, EncodeState& state) const {
        if (!state.go_on(word.size())) return false;
        const base::TokenId whole = keys_.find(word);
        if (whole != kNoToken && known_.is_one_token(whole) == KnownWords::Answer::kYes) {
            state.ids.push_back(whole);
            return true;
        }
        state.symbols.clear();
        const CharTable& table = CharTable::instance();
        for (std::size_t pos = 0; pos < word.size();) {
            const std::uint32_t bytes = read_valid_utf8(table, word.data() + pos).bytes;
            state.symbols.push_back(
                {static_cast<std::uint32_t>(pos), bytes, keys_.find(word.substr(pos, bytes))});
            pos += bytes;
        }
        const auto lookup = [this, word](const Symbol& left, const Symbol& right) {
            const base::TokenId id = keys_.find(word.substr(left.begin, left.bytes + right.bytes));
            if (id == kNoToken) return PairMerge{};
            return PairMerge{order_of_score(spec_.scores[static_cast<std::size_t>(id)]), id};
        };
        if (!merge_symbols(state, lookup)) return false;
        const std::size_t before = state.ids.size();
        for (const Symbol& symbol : state.symbols) append(word, symbol, state.ids);
        if (whole != kNoToken) {
            known_.learn(whole, state.ids.size() == before + 1 && state.ids.back() == whole);
        }
        return true;
    }

    void append(std::string_view word, const Symbol& symbol,
                std::vector<base::TokenId>& ids) const {
        if (symbol.id != kNoToken) {
            ids.push_back(symbol.id);
            return;
        }
        bool has_unknown = false;
        for (const char c : word.substr(symbol.begin, symbol.bytes)) {
            has_unknown = has_unknown || byte_ids_[static_cast<unsigned char>(c)] == kNoToken;
        }
        if (has_unknown) {
            // Neighbouring unknown characters are one unknown token.
            if (ids.empty() || ids.back() != *spec_.unk) ids.push_back(*spec_.unk);
            return;
        }
        for (const char c : word.substr(symbol.begin, symbol.bytes)) {
            ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
        }
    }

    const TokenizerSpec& spec_;  // the tokenizer's, which owns this model
    TokenMap keys_;
    CharPairs inner_;
    std::array<base::TokenId, 256> byte_ids_{};
    bool has_unused_ = false;
    KnownWords known_;
};

}  // namespace

base::Result<std::unique_ptr<TokenModel>> make_sentencepiece_bpe(const ModelInput& input) {
    auto model = std::make_unique<SentencePieceModel>(input);
    if (base::Status status = model->check(); !status.ok()) return status.error();
    return std::unique_ptr<TokenModel>(std::move(model));
}

}  // namespace pagoda::text
