// Byte-pair encoding by a list of merges, over GPT-2's bytes or (gemma4 and its like) over
// characters with byte tokens for those that the vocabulary lacks.

#include <array>

#include <fmt/core.h>

#include "text/tokenize/byte_map.h"
#include "text/tokenize/known_words.h"
#include "text/tokenize/merge_loop.h"
#include "text/tokenize/pre_tokenizer.h"
#include "text/tokenize/token_map.h"
#include "text/tokenize/token_model.h"

namespace pagoda::text {
namespace {

class BpeModel final : public TokenModel {
  public:
    BpeModel(const ModelInput& input, const PreTokenizerEntry& entry)
        : spec_(input.spec),
          bytes_(input.bytes),
          entry_(entry),
          keys_(input.spec.tokens.size()),
          merges_(input.spec.merges.size()),
          known_(input.spec.tokens.size()) {}

    [[nodiscard]] base::Status load() {
        const auto tokens = static_cast<base::TokenId>(spec_.tokens.size());
        // A text that two tokens spell belongs to the one that merges can reach.
        for (const bool is_special : {false, true}) {
            for (base::TokenId id = 0; id < tokens; ++id) {
                if (is_reserved(id) == is_special) keys_.insert(key(id), id);
            }
        }
        for (unsigned byte = 0; byte < 256; ++byte) {
            byte_ids_[byte] = byte_token(static_cast<unsigned char>(byte));
        }
        for (std::size_t i = 0; i < spec_.merges.size(); ++i) {
            if (base::Status status = load_merge(i); !status.ok()) return status;
        }
        return {};
    }

    bool encode(std::string_view text, EncodeState& state) const override {
        if (entry_.escapes_spaces) {
            state.text.clear();
            for (const char c : text) {
                if (c == ' ') {
                    state.text += kSpaceMark;
                } else {
                    state.text += c;
                }
            }
            text = state.text;
        }
        Words words(*this, state);
        return split_words(*entry_.rule, text, words);
    }

  private:
    class Words final : public WordSink {
      public:
        Words(const BpeModel& model, EncodeState& state) : model_(model), state_(state) {}
        bool word(std::string_view text) override {
            return state_.go_on(text.size()) && model_.encode_word(text, state_);
        }

      private:
        const BpeModel& model_;
        EncodeState& state_;
    };

    // Tokens that plain text never becomes as a whole word.
    [[nodiscard]] bool is_reserved(base::TokenId id) const {
        const TokenType type = type_of(spec_, id);
        return type == TokenType::kControl || type == TokenType::kUnknown ||
               type == TokenType::kUserDefined || type == TokenType::kByte;
    }
    [[nodiscard]] std::string_view key(base::TokenId id) const {
        return entry_.rule->is_byte_level
                   ? bytes_[id]
                   : std::string_view(spec_.tokens[static_cast<std::size_t>(id)]);
    }
    [[nodiscard]] base::TokenId byte_token(unsigned char byte) const {
        const char c = static_cast<char>(byte);
        if (entry_.rule->is_byte_level) return keys_.find(std::string_view(&c, 1));
        return keys_.find(fmt::format("<0x{:02X}>", byte));
    }

    [[nodiscard]] base::Result<base::TokenId> merge_part(std::size_t index, std::string_view text,
                                                         std::string& whole) const {
        const std::size_t begin = whole.size();
        if (!entry_.rule->is_byte_level) {
            whole += text;
        } else if (!ByteMap::instance().decode(text, whole)) {
            return base::invalid(
                fmt::format("merge {} \"{}\": \"{}\" is not written in byte characters", index,
                            spec_.merges[index], text));
        }
        const base::TokenId id = keys_.find(std::string_view(whole).substr(begin));
        if (id == kNoToken) {
            return base::invalid(fmt::format("merge {} \"{}\": \"{}\" is not in the vocabulary",
                                             index, spec_.merges[index], text));
        }
        return id;
    }

    [[nodiscard]] base::Status load_merge(std::size_t index) {
        const std::string_view merge = spec_.merges[index];
        const std::size_t space = merge.find(' ', 1);
        if (space == merge.npos || space + 1 == merge.size()) {
            return base::invalid(
                fmt::format("merge {} \"{}\" is not two parts with a space between", index, merge));
        }
        std::string whole;
        const auto left = merge_part(index, merge.substr(0, space), whole);
        if (!left.ok()) return left.error();
        const auto right = merge_part(index, merge.substr(space + 1), whole);
        if (!right.ok()) return right.error();
        const base::TokenId joined = keys_.find(whole);
        if (joined == kNoToken) {
            return base::invalid(fmt::format(
                "merge {} \"{}\": what it joins to is not in the vocabulary", index, merge));
        }
        merges_.insert(*left, *right, {static_cast<std::uint32_t>(index), joined});
        return {};
    }

    bool encode_word(std::string_view word, EncodeState& state) const {
        const base::TokenId whole = keys_.find(word);
        const bool may_be_whole = whole != kNoToken && !is_reserved(whole);
        if (may_be_whole) {
            const KnownWords::Answer answer = known_.is_one_token(whole);
            const bool is_feeds = entry_.escapes_spaces && word.front() == '\n';
            if (entry_.ignores_merges || is_feeds || answer == KnownWords::Answer::kYes) {
                state.ids.push_back(whole);
                return true;
            }
        }
        state.symbols.clear();
        if (entry_.rule->is_byte_level) {
            bytes_to_symbols(word, state.symbols);
        } else {
            characters_to_symbols(word, state.symbols);
        }
        const auto lookup = [this](const Symbol& left, const Symbol& right) {
            return merges_.find(left.id, right.id);
        };
        if (!merge_symbols(state, lookup)) return false;
        for (const Symbol& symbol : state.symbols) state.ids.push_back(symbol.id);
        if (may_be_whole) {
            known_.learn(whole, state.symbols.size() == 1 && state.symbols.front().id == whole);
        }
        return true;
    }

    void add_symbol(std::vector<Symbol>& symbols, std::size_t begin, std::size_t bytes,
                    base::TokenId id) const {
        if (id == kNoToken && spec_.unk) id = *spec_.unk;
        // Without an unknown token the reference drops what the vocabulary can't spell.
        if (id == kNoToken) return;
        symbols.push_back(
            {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(bytes), id});
    }

    void bytes_to_symbols(std::string_view word, std::vector<Symbol>& symbols) const {
        for (std::size_t i = 0; i < word.size(); ++i) {
            add_symbol(symbols, i, 1, byte_ids_[static_cast<unsigned char>(word[i])]);
        }
    }

    void characters_to_symbols(std::string_view word, std::vector<Symbol>& symbols) const {
        for (std::size_t pos = 0; pos < word.size();) {
            const std::size_t bytes = decode_valid_utf8(word.data() + pos).bytes;
            const base::TokenId id = keys_.find(word.substr(pos, bytes));
            if (id != kNoToken) {
                add_symbol(symbols, pos, bytes, id);
            } else {
                for (std::size_t i = pos; i < pos + bytes; ++i) {
                    add_symbol(symbols, i, 1, byte_ids_[static_cast<unsigned char>(word[i])]);
                }
            }
            pos += bytes;
        }
    }

    const TokenizerSpec& spec_;  // these three: the tokenizer's, which owns this model
    const TokenBytes& bytes_;
    const PreTokenizerEntry& entry_;  // static table
    TokenMap keys_;
    PairMap merges_;
    std::array<base::TokenId, 256> byte_ids_{};
    KnownWords known_;
};

}  // namespace

base::Result<std::unique_ptr<TokenModel>> make_byte_level_bpe(const ModelInput& input) {
    const PreTokenizerEntry* entry = find_pre_tokenizer(input.spec.pre_tokenizer);
    if (entry == nullptr) {
        return base::Error{base::ErrorCode::kUnsupported,
                           fmt::format("the pre-tokenizer \"{}\" is not known; known are: {}",
                                       input.spec.pre_tokenizer, pre_tokenizer_names()),
                           "tokenizer.ggml.pre"};
    }
    auto model = std::make_unique<BpeModel>(input, *entry);
    if (base::Status status = model->load(); !status.ok()) return status.error();
    return std::unique_ptr<TokenModel>(std::move(model));
}

}  // namespace pagoda::text
