// SentencePiece's unigram model: the text is normalized by a precompiled table and white space
// rules, then cut so that the sum of token scores is greatest.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "base/utf8.h"
#include "text/tokenize/byte_trie.h"
#include "text/tokenize/char_pairs.h"
#include "text/tokenize/charsmap.h"
#include "text/tokenize/token_model.h"

namespace pagoda::text {
namespace {

class UnigramModel final : public TokenModel {
  public:
    UnigramModel(const ModelInput& input, CharsMap charsmap, std::size_t token_bytes)
        : spec_(input.spec),
          charsmap_(std::move(charsmap)),
          pieces_(token_bytes),
          user_defined_(token_bytes),
          inner_(token_bytes) {
        byte_ids_.fill(kNoToken);
        float least = std::numeric_limits<float>::max();
        for (std::size_t i = 0; i < spec_.tokens.size(); ++i) {
            const auto id = static_cast<base::TokenId>(i);
            const TokenType type = type_of(spec_, id);
            const std::string& text = spec_.tokens[i];
            if (type == TokenType::kByte) {
                byte_ids_[static_cast<std::size_t>(byte_of_token_text(text))] = id;
            }
            if (type == TokenType::kNormal) {
                least = std::min(least, spec_.scores[i]);
                most_ = std::max(most_, spec_.scores[i]);
            }
            if (type == TokenType::kUserDefined) user_defined_.insert(text, id);
            if (type != TokenType::kNormal && type != TokenType::kUserDefined) continue;
            pieces_.insert(text, id);
            inner_.add_token(text);
        }
        constexpr double kUnknownPenalty = 10.0;
        unknown_score_ = double{least} - kUnknownPenalty;
    }

    bool encode(std::string_view text, EncodeState& state) const override {
        const std::string normal = normalize(text);
        std::vector<Best> best;
        double score = 0.0;  // of everything before the part
        return for_each_part(normal, inner_, [&](std::string_view part) {
            if (!find_best(part, score, best, state)) return false;
            score = best.back().score;
            append_best(part, best, state);
            return true;
        });
    }

  private:
    // The best way to reach a position: the token that ends there. Sums are doubles from the start
    // of the text, as in the reference: the same tokens in another order are often worth the same.
    struct Best {
        double score = -std::numeric_limits<double>::infinity();
        base::TokenId id = kNoToken;  // kNoToken: an unknown character
        std::uint32_t begin = 0;
    };

    // Appends the normal form of what text begins with, and says how long that was.
    std::size_t normalize_prefix(std::string_view text, std::string& out) const {
        if (const auto match = user_defined_.longest_prefix(text); match.id != kNoToken) {
            out = text.substr(0, match.bytes);
            return match.bytes;
        }
        if (const CharsMap::Match match = charsmap_.longest_prefix(text); match.bytes > 0) {
            out = match.replacement;
            // A key that ends inside a character would leave half of it.
            const bool is_whole = match.bytes == text.size() || (text[match.bytes] & 0xC0) != 0x80;
            if (is_whole) return match.bytes;
        }
        const std::size_t bytes = decode_valid_utf8(text.data()).bytes;
        out = text.substr(0, bytes);
        return bytes;
    }

    std::string normalize(std::string_view text) const {
        const bool merges_blanks = spec_.remove_extra_whitespaces.value_or(false);
        const bool has_prefix = spec_.add_space_prefix.value_or(true);
        std::string normal;
        normal.reserve(text.size() + text.size() / 2 + kSpaceMark.size());
        bool is_empty = true;
        bool after_blank = merges_blanks;
        std::string piece;
        while (!text.empty()) {
            text.remove_prefix(normalize_prefix(text, piece));
            std::string_view rest = piece;
            while (after_blank && rest.starts_with(' ')) rest.remove_prefix(1);
            if (rest.empty()) continue;
            if (is_empty && has_prefix) normal += kSpaceMark;
            is_empty = false;
            for (const char c : rest) {
                if (c == ' ') {
                    normal += kSpaceMark;
                } else {
                    normal += c;
                }
            }
            after_blank = merges_blanks && rest.ends_with(' ');
        }
        while (merges_blanks && normal.ends_with(kSpaceMark)) {
            normal.resize(normal.size() - kSpaceMark.size());
        }
        // A hostile table may point into the middle of a character.
        return base::is_valid_utf8(normal) ? normal : base::replace_invalid_utf8(normal);
    }

    // What a token adds; user-defined ones always win.
    [[nodiscard]] double score_of(base::TokenId id, std::size_t bytes) const {
        if (type_of(spec_, id) == TokenType::kUserDefined) {
            return static_cast<double>(bytes) * most_ - 0.1;
        }
        return spec_.scores[static_cast<std::size_t>(id)];
    }

    bool find_best(std::string_view text, double score_before, std::vector<Best>& best,
                   EncodeState& state) const {
        best.assign(text.size() + 1, Best{});
        best[0].score = score_before;
        const auto offer = [&best](std::size_t begin, std::size_t end, base::TokenId id,
                                   double sum) {
            if (sum > best[end].score) {
                best[end] = {sum, id, static_cast<std::uint32_t>(begin)};
            }
        };
        for (std::size_t pos = 0; pos < text.size();) {
            const std::size_t bytes = decode_valid_utf8(text.data() + pos).bytes;
            bool has_single = false;
            ByteTrie::Node node = ByteTrie::kRoot;
            for (std::size_t end = pos; end < text.size();) {
                node = pieces_.child(node, static_cast<unsigned char>(text[end++]));
                if (node == ByteTrie::kNone) break;
                const base::TokenId id = pieces_.id(node);
                if (id == kNoToken) continue;
                offer(pos, end, id, score_of(id, end - pos) + best[pos].score);
                has_single = has_single || end - pos == bytes;
            }
            if (!has_single) {
                const double sum = unknown_score_ + best[pos].score;
                offer(pos, pos + bytes, kNoToken, sum);
            }
            pos += bytes;
            if (!state.go_on(1)) return false;
        }
        return true;
    }

    void append_best(std::string_view text, const std::vector<Best>& best,
                     EncodeState& state) const {
        std::vector<Symbol>& path = state.symbols;
        path.clear();
        for (std::size_t end = text.size(); end > 0; end = best[end].begin) {
            path.push_back(
                {best[end].begin, static_cast<std::uint32_t>(end - best[end].begin), best[end].id});
        }
        for (auto step = path.rbegin(); step != path.rend(); ++step) {
            if (step->id != kNoToken) {
                state.ids.push_back(step->id);
            } else {
                append_unknown(text.substr(step->begin, step->bytes), state);
            }
        }
    }

    void append_unknown(std::string_view character, EncodeState& state) const {
        std::vector<base::TokenId>& ids = state.ids;
        const bool has_bytes = std::all_of(character.begin(), character.end(), [this](char c) {
            return byte_ids_[static_cast<unsigned char>(c)] != kNoToken;
        });
        if (has_bytes) {
            for (const char c : character) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
            return;
        }
        // Neighbouring unknown characters are one unknown token.
        const bool is_first = ids.size() == state.fragment_begin;
        if (is_first || ids.back() != *spec_.unk) ids.push_back(*spec_.unk);
    }

    const TokenizerSpec& spec_;  // the tokenizer's, which owns this model
    CharsMap charsmap_;
    ByteTrie pieces_;
    ByteTrie user_defined_;
    CharPairs inner_;
    std::array<base::TokenId, 256> byte_ids_{};
    double unknown_score_ = 0.0;
    float most_ = std::numeric_limits<float>::lowest();
};

}  // namespace

base::Result<std::unique_ptr<TokenModel>> make_unigram(const ModelInput& input) {
    if (input.spec.scores.empty()) {
        return base::invalid("a unigram vocabulary needs token scores, but has none");
    }
    for (std::size_t i = 0; i < input.spec.scores.size(); ++i) {
        if (!std::isfinite(input.spec.scores[i])) {
            return base::invalid(fmt::format("the score of token {} is infinite", i));
        }
    }
    if (!input.spec.unk) return base::invalid("a unigram vocabulary needs an unknown token");
    std::size_t token_bytes = 0;
    for (const std::string& token : input.spec.tokens) token_bytes += token.size();
    if (token_bytes > ByteTrie::kMaxKeyBytes) {
        return base::invalid(fmt::format("the token texts are {} bytes, at most {} are taken",
                                         token_bytes, ByteTrie::kMaxKeyBytes));
    }
    auto charsmap = CharsMap::parse(input.spec.precompiled_charsmap);
    if (!charsmap.ok()) return charsmap.error();
    return std::unique_ptr<TokenModel>(
        std::make_unique<UnigramModel>(input, std::move(charsmap).value(), token_bytes));
}

}  // namespace pagoda::text
