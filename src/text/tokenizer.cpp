#include "text/tokenizer.h"

#include <algorithm>
#include <bitset>
#include <cmath>

#include <fmt/core.h>

#include "base/utf8.h"
#include "text/end_of_generation.h"
#include "text/tokenize/byte_map.h"
#include "text/tokenize/pre_tokenizer.h"
#include "text/tokenize/special_tokens.h"
#include "text/tokenize/token_model.h"

namespace pagoda::text {
namespace {

constexpr std::size_t kMaxTokens = std::size_t{1} << 23;
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;

bool is_hidden(TokenType type) {
    return type == TokenType::kControl || type == TokenType::kUnknown;
}

bool uses_space_mark(const TokenizerSpec& spec) {
    if (spec.kind != TokenizerKind::kByteLevelBpe) return true;
    const PreTokenizerEntry* entry = find_pre_tokenizer(spec.pre_tokenizer);
    return entry != nullptr && entry->escapes_spaces;
}

bool is_byte_mapped(const TokenizerSpec& spec) {
    if (spec.kind != TokenizerKind::kByteLevelBpe) return false;
    const PreTokenizerEntry* entry = find_pre_tokenizer(spec.pre_tokenizer);
    return entry != nullptr && entry->rule->is_byte_level;
}

void append_unmarked(std::string_view text, std::string& out) {
    for (std::size_t at = text.find(kSpaceMark); at != text.npos; at = text.find(kSpaceMark)) {
        out += text.substr(0, at);
        out += ' ';
        text.remove_prefix(at + kSpaceMark.size());
    }
    out += text;
}

base::Result<TokenBytes> bytes_of_tokens(const TokenizerSpec& spec) {
    const bool is_mapped = is_byte_mapped(spec);
    const bool is_marked = uses_space_mark(spec);
    TokenBytes bytes;
    for (std::size_t i = 0; i < spec.tokens.size(); ++i) {
        const std::string& text = spec.tokens[i];
        std::string& out = bytes.tail();
        const TokenType type = type_of(spec, static_cast<base::TokenId>(i));
        const bool is_verbatim = is_hidden(type) || type == TokenType::kUserDefined;
        if (type == TokenType::kByte) {
            const int byte = byte_of_token_text(text);
            if (byte < 0) {
                return base::invalid(fmt::format(
                    "token {} is of type byte, but its text is \"{}\", not like <0x0A>", i, text));
            }
            out += static_cast<char>(byte);
        } else if (is_marked && !is_verbatim) {
            append_unmarked(text, out);
        } else if (is_verbatim || !is_mapped || !ByteMap::instance().decode(text, out)) {
            out += text;
        }
        bytes.close_token();
    }
    return bytes;
}

base::Status check_id(const TokenizerSpec& spec, std::optional<base::TokenId> id,
                      std::string_view name) {
    if (!id || (*id >= 0 && static_cast<std::size_t>(*id) < spec.tokens.size())) return {};
    return base::invalid(fmt::format("the {} token is {}, but the vocabulary has {} tokens", name,
                                     *id, spec.tokens.size()));
}

base::Status check_sizes(const TokenizerSpec& spec) {
    const std::size_t tokens = spec.tokens.size();
    if (tokens == 0 || tokens > kMaxTokens) {
        return base::invalid(
            fmt::format("the vocabulary has {} tokens, but must have 1 to {}", tokens, kMaxTokens));
    }
    if (!spec.types.empty() && spec.types.size() != tokens) {
        return base::invalid(
            fmt::format("{} token types for {} tokens", spec.types.size(), tokens));
    }
    if (!spec.scores.empty() && spec.scores.size() != tokens) {
        return base::invalid(
            fmt::format("{} token scores for {} tokens", spec.scores.size(), tokens));
    }
    for (std::size_t i = 0; i < spec.scores.size(); ++i) {
        if (std::isnan(spec.scores[i])) {
            return base::invalid(fmt::format("the score of token {} is not a number", i));
        }
    }
    std::size_t text_bytes = 0;
    for (const std::string& token : spec.tokens) text_bytes += token.size();
    if (text_bytes > kMaxTextBytes || SpecialTokens::key_bytes(spec) > ByteTrie::kMaxKeyBytes) {
        return base::invalid(fmt::format(
            "the token texts are {} bytes, of which {} special; at "
            "most {} and {} are taken",
            text_bytes, SpecialTokens::key_bytes(spec), kMaxTextBytes, ByteTrie::kMaxKeyBytes));
    }
    return {};
}

base::Status check_spec(const TokenizerSpec& spec) {
    if (base::Status status = check_sizes(spec); !status.ok()) return status;
    const struct {
        std::string_view name;
        std::optional<base::TokenId> id;
    } ids[] = {{"BOS", spec.bos},     {"EOS", spec.eos},       {"EOT", spec.eot},
               {"unknown", spec.unk}, {"separator", spec.sep}, {"padding", spec.pad},
               {"CLS", spec.cls},     {"mask", spec.mask}};
    for (const auto& [name, id] : ids) {
        if (base::Status status = check_id(spec, id, name); !status.ok()) return status;
    }
    const struct {
        std::string_view name;
        const std::vector<base::TokenId>& ids;
    } lists[] = {
        {"end-of-generation", spec.extra_eog}, {"lstrip", spec.lstrip}, {"rstrip", spec.rstrip}};
    for (const auto& [name, list] : lists) {
        for (const base::TokenId id : list) {
            if (base::Status status = check_id(spec, id, name); !status.ok()) return status;
        }
    }
    if (spec.add_bos.value_or(false) && !spec.bos && !spec.cls) {
        return base::invalid("the model asks for a BOS token, but names none");
    }
    if (spec.add_eos.value_or(false) && !spec.eos && !spec.sep) {
        return base::invalid("the model asks for an EOS token, but names none");
    }
    return {};
}

// Files leave out special ids that their kind of tokenizer has always had: found by their names.
void fill_usual_ids(TokenizerSpec& spec) {
    const auto fill = [&spec](std::optional<base::TokenId>& id, std::string_view text) {
        if (id) return;
        const std::size_t count = std::min<std::size_t>(spec.tokens.size(), 256);
        for (std::size_t i = 0; i < count; ++i) {
            const auto candidate = static_cast<base::TokenId>(i);
            if (spec.tokens[i] == text && is_hidden(type_of(spec, candidate))) id = candidate;
        }
    };
    switch (spec.kind) {
        case TokenizerKind::kByteLevelBpe:
            return;
        case TokenizerKind::kSentencePieceBpe:
            fill(spec.bos, "<s>");
            [[fallthrough]];
        case TokenizerKind::kUnigram:
            fill(spec.eos, "</s>");
            fill(spec.unk, "<unk>");
            return;
        case TokenizerKind::kWordPiece:
            if (!spec.bos) fill(spec.cls, "[CLS]");
            if (!spec.eos) fill(spec.sep, "[SEP]");
            fill(spec.unk, "[UNK]");
            return;
    }
}

base::Result<std::unique_ptr<TokenModel>> make_model(const ModelInput& input) {
    switch (input.spec.kind) {
        case TokenizerKind::kByteLevelBpe:
            return make_byte_level_bpe(input);
        case TokenizerKind::kSentencePieceBpe:
            return make_sentencepiece_bpe(input);
        case TokenizerKind::kUnigram:
            return make_unigram(input);
        case TokenizerKind::kWordPiece:
            return make_wordpiece(input);
    }
    return base::invalid("unknown kind of tokenizer");
}

// How few tokens a text can have: no fewer than its bytes that have a token to fall back on, by the
// longest token. Nothing is known where text without such a token is taken together, or white space
// goes with a special token.
class LeastTokens {
  public:
    LeastTokens(const TokenizerSpec& spec, const TokenBytes& bytes) {
        const bool is_mapped = is_byte_mapped(spec);
        const bool is_bpe = is_mapped || spec.kind == TokenizerKind::kSentencePieceBpe;
        if (!is_bpe || !spec.lstrip.empty() || !spec.rstrip.empty()) return;
        std::size_t longest = 1;
        for (std::size_t i = 0; i < spec.tokens.size(); ++i) {
            const auto id = static_cast<base::TokenId>(i);
            const std::string_view token = bytes[id];
            longest = std::max(longest, token.size());
            const TokenType fallback = is_mapped ? TokenType::kNormal : TokenType::kByte;
            if (token.size() == 1 && type_of(spec, id) == fallback)
                counts_.set(static_cast<unsigned char>(token.front()));
        }
        if (is_mapped || counts_.all()) longest_ = longest;
    }

    [[nodiscard]] std::int64_t of(std::string_view text) const {
        if (longest_ == 0) return 0;
        std::size_t count = 0;
        for (const char byte : text) count += counts_[static_cast<unsigned char>(byte)] ? 1 : 0;
        return static_cast<std::int64_t>((count + longest_ - 1) / longest_);
    }

  private:
    std::bitset<256> counts_;  // bytes that are in a token, whatever stands around them
    std::size_t longest_ = 0;  // bytes; 0: nothing is known
};

class ModelTokenizer final : public Tokenizer {
  public:
    ModelTokenizer(TokenizerSpec spec, TokenBytes bytes)
        : Tokenizer(std::move(spec)),
          bytes_(std::move(bytes)),
          least_(spec_, bytes_),
          special_(spec_) {}

    [[nodiscard]] base::Status load() {
        auto model = make_model({spec_, bytes_});
        if (!model.ok()) return model.error();
        model_ = std::move(model).value();
        return {};
    }

    [[nodiscard]] base::Result<std::vector<base::TokenId>> encode(
        std::string_view text, const EncodeOptions& options) const override {
        if (text.size() > kMaxTextBytes) {
            return base::Error{base::ErrorCode::kResourceExhausted,
                               fmt::format("the text has {} bytes, at most {} are taken at once",
                                           text.size(), kMaxTextBytes)};
        }
        std::string repaired;
        if (!base::is_valid_utf8(text)) {
            repaired = base::replace_invalid_utf8(text);
            text = repaired;
        }
        EncodeState state(options);
        using Ends = EncodeOptions::SpecialEnds;
        const auto first = spec_.cls ? spec_.cls : spec_.bos;
        const auto last =
            spec_.kind == TokenizerKind::kWordPiece && spec_.sep ? spec_.sep : spec_.eos;
        const bool adds_first =
            options.ends == Ends::kForceBos || (options.ends == Ends::kModel && adds_bos());
        if (adds_first && first) state.ids.push_back(*first);
        if (!encode_parts(text, options.parse_special, state)) {
            return base::Error{base::ErrorCode::kCancelled, "tokenization was cancelled"};
        }
        if (options.ends != Ends::kNone && adds_eos() && last) state.ids.push_back(*last);
        return std::move(state.ids);
    }

    [[nodiscard]] std::int64_t least_tokens(std::string_view text) const override {
        return least_.of(text);
    }

    [[nodiscard]] std::string token_bytes(base::TokenId id, bool skip_special) const override {
        return std::string(bytes_of(id, skip_special));
    }

    [[nodiscard]] std::string decode(std::span<const base::TokenId> ids,
                                     bool skip_special) const override {
        std::string out;
        bool at_start = strips_leading_space();
        for (const base::TokenId id : ids) {
            std::string_view bytes = bytes_of(id, skip_special);
            if (bytes.empty()) continue;
            if (at_start && bytes.front() == ' ') bytes.remove_prefix(1);
            at_start = false;
            out += bytes;
        }
        return out;
    }

    [[nodiscard]] bool strips_leading_space() const override {
        switch (spec_.kind) {
            case TokenizerKind::kByteLevelBpe:
                return false;
            case TokenizerKind::kWordPiece:
                return true;
            default:
                return spec_.add_space_prefix.value_or(true);
        }
    }

  private:
    [[nodiscard]] std::string_view bytes_of(base::TokenId id, bool skip_special) const {
        if (id < 0 || id >= vocab_size()) return {};
        if (skip_special && is_special(id)) return {};
        return bytes_[id];
    }

    [[nodiscard]] bool adds_eos() const {
        const bool is_usual =
            spec_.kind == TokenizerKind::kUnigram || spec_.kind == TokenizerKind::kWordPiece;
        return spec_.add_eos.value_or(is_usual);
    }

    bool encode_parts(std::string_view text, bool parse_special, EncodeState& state) const {
        for (std::size_t pos = 0; pos < text.size();) {
            const SpecialTokens::Match match = special_.next(text, pos, parse_special);
            state.fragment_begin = state.ids.size();
            if (match.begin > pos && !model_->encode(text.substr(pos, match.begin - pos), state)) {
                return false;
            }
            if (match.id != kNoToken) state.ids.push_back(match.id);
            pos = match.begin + match.bytes;
            if (!state.go_on(match.bytes + 1)) return false;
        }
        return true;
    }

    TokenBytes bytes_;
    LeastTokens least_;
    SpecialTokens special_;
    std::unique_ptr<TokenModel> model_;  // borrows spec_ and bytes_
};

}  // namespace

int byte_of_token_text(std::string_view text) {
    if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return -1;
    int value = 0;
    for (const char c : text.substr(3, 2)) {
        const char upper = c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
        const bool is_digit = upper >= '0' && upper <= '9';
        if (!is_digit && (upper < 'A' || upper > 'F')) return -1;
        value = value * 16 + (is_digit ? upper - '0' : upper - 'A' + 10);
    }
    return value;
}

Tokenizer::Tokenizer(TokenizerSpec spec) : spec_(std::move(spec)) {
    // Never printed, and plain text unless special tokens are parsed: whatever the file calls them.
    for (const base::TokenId id : end_tokens_by_name(spec_)) {
        spec_.types[static_cast<std::size_t>(id)] = TokenType::kControl;
    }
    eog_ = end_of_generation(spec_);
}

base::Result<std::unique_ptr<Tokenizer>> Tokenizer::create(TokenizerSpec spec) {
    if (base::Status status = check_spec(spec); !status.ok()) return status.error();
    fill_usual_ids(spec);
    auto bytes = bytes_of_tokens(spec);
    if (!bytes.ok()) return bytes.error();
    auto tokenizer = std::make_unique<ModelTokenizer>(std::move(spec), std::move(bytes).value());
    if (base::Status status = tokenizer->load(); !status.ok()) return status.error();
    return std::unique_ptr<Tokenizer>(std::move(tokenizer));
}

bool Tokenizer::is_special(base::TokenId id) const {
    return id >= 0 && id < vocab_size() && is_hidden(type_of(spec_, id));
}

bool Tokenizer::is_end_of_generation(base::TokenId id) const {
    return std::binary_search(eog_.begin(), eog_.end(), id);
}

bool Tokenizer::adds_bos() const {
    if (!spec_.bos && !spec_.cls) return false;
    if (spec_.add_bos) return *spec_.add_bos;
    switch (spec_.kind) {
        case TokenizerKind::kByteLevelBpe: {
            const PreTokenizerEntry* entry = find_pre_tokenizer(spec_.pre_tokenizer);
            return entry != nullptr && entry->adds_bos;
        }
        case TokenizerKind::kSentencePieceBpe:
        case TokenizerKind::kWordPiece:
            return true;
        case TokenizerKind::kUnigram:
            return false;
    }
    return false;
}

}  // namespace pagoda::text
