// SentencePiece's byte-pair encoding: the pair whose joined text has the best score goes first;
// characters that the vocabulary lacks become byte tokens, or the unknown token.

#include <algorithm>
#include <array>
#include <bit>
#include <map>

#include <fmt/core.h>

#include "text/tokenize/char_pairs.h"
#include "text/tokenize/known_words.h"
#include "text/tokenize/merge_loop.h"
#include "text/tokenize/token_map.h"
#include "text/tokenize/token_model.h"

namespace pagoda::text {
namespace {

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
            inner_.add_token(spec_.tokens[i]);
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
        return for_each_part(escaped, inner_, [this, &state](std::string_view part) {
            return encode_word(part, state);
        });
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
    bool encode_word(std::string_view word, EncodeState& state) const {
        if (!state.go_on(word.size())) return false;
        const base::TokenId whole = keys_.find(word);
        if (whole != kNoToken && known_.is_one_token(whole) == KnownWords::Answer::kYes) {
            state.ids.push_back(whole);
            return true;
        }
        state.symbols.clear();
        for (std::size_t pos = 0; pos < word.size();) {
            const std::uint32_t bytes = decode_valid_utf8(word.data() + pos).bytes;
            state.symbols.push_back(
                {static_cast<std::uint32_t>(pos), bytes, keys_.find(word.substr(pos, bytes))});
            pos += bytes;
        }
        SplitOf unused;
        const auto lookup = [this, word, &unused](const Symbol& left, const Symbol& right) {
            const base::TokenId id = keys_.find(word.substr(left.begin, left.bytes + right.bytes));
            if (id == kNoToken) return PairMerge{};
            if (type_of(spec_, id) == TokenType::kUnused) unused[id] = left.bytes;
            return PairMerge{order_of_score(spec_.scores[static_cast<std::size_t>(id)]), id};
        };
        if (!merge_symbols(state, lookup)) return false;
        const std::size_t before = state.ids.size();
        for (const Symbol& symbol : state.symbols) append_used(word, symbol, unused, state);
        if (whole != kNoToken) {
            known_.learn(whole, state.ids.size() == before + 1 && state.ids.back() == whole);
        }
        return true;
    }

    // Where the last pair that made an unused token was joined, in bytes from its start.
    using SplitOf = std::map<base::TokenId, std::uint32_t>;

    // Unused tokens only serve to reach longer ones: they are taken apart again.
    void append_used(std::string_view word, const Symbol& symbol, const SplitOf& unused,
                     EncodeState& state) const {
        if (unused.empty()) return append(word, symbol, state);
        std::vector<Symbol> stack = {symbol};
        while (!stack.empty()) {
            const Symbol top = stack.back();
            stack.pop_back();
            const auto split = unused.find(top.id);
            if (split == unused.end()) {
                append(word, top, state);
                continue;
            }
            const std::uint32_t middle = top.begin + split->second;
            const std::uint32_t rest = top.bytes - split->second;
            stack.push_back({middle, rest, keys_.find(word.substr(middle, rest))});
            stack.push_back(
                {top.begin, split->second, keys_.find(word.substr(top.begin, split->second))});
        }
    }

    void append(std::string_view word, const Symbol& symbol, EncodeState& state) const {
        std::vector<base::TokenId>& ids = state.ids;
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
            const bool is_first = ids.size() == state.fragment_begin;
            if (is_first || ids.back() != *spec_.unk) ids.push_back(*spec_.unk);
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
    KnownWords known_;
};

}  // namespace

base::Result<std::unique_ptr<TokenModel>> make_sentencepiece_bpe(const ModelInput& input) {
    auto model = std::make_unique<SentencePieceModel>(input);
    if (base::Status status = model->check(); !status.ok()) return status.error();
    return std::unique_ptr<TokenModel>(std::move(model));
}

}  // namespace pagoda::text
