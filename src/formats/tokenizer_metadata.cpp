#include "formats/tokenizer_metadata.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/core.h>

#include "formats/gguf_types.h"
#include "formats/token_strips.h"

namespace pagoda::formats {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;
using base::TokenId;
using text::TokenizerKind;
using text::TokenizerSpec;
using text::TokenType;

struct ModelName {
    std::string_view name;
    TokenizerKind kind;
    // What the name alone says; keys of the file do not change it.
    std::string_view pre_tokenizer = {};
    bool adds_bos = false;
};
constexpr std::array kModelNames{
    ModelName{"gpt2", TokenizerKind::kByteLevelBpe},
    ModelName{"llama", TokenizerKind::kSentencePieceBpe},
    ModelName{"t5", TokenizerKind::kUnigram},
    ModelName{"bert", TokenizerKind::kWordPiece},
    // Merges over characters. The model was trained with BOS, but files say that it has none.
    ModelName{"gemma4", TokenizerKind::kByteLevelBpe, "gemma4", true},
};

struct IdKey {
    std::string_view key;
    std::optional<TokenId> TokenizerSpec::*id;
};
// "seperator" is how the format spells it; both spellings exist.
constexpr std::array kIdKeys{
    IdKey{"tokenizer.ggml.bos_token_id", &TokenizerSpec::bos},
    IdKey{"tokenizer.ggml.eos_token_id", &TokenizerSpec::eos},
    IdKey{"tokenizer.ggml.eot_token_id", &TokenizerSpec::eot},
    IdKey{"tokenizer.ggml.unknown_token_id", &TokenizerSpec::unk},
    IdKey{"tokenizer.ggml.seperator_token_id", &TokenizerSpec::sep},
    IdKey{"tokenizer.ggml.separator_token_id", &TokenizerSpec::sep},
    IdKey{"tokenizer.ggml.padding_token_id", &TokenizerSpec::pad},
    IdKey{"tokenizer.ggml.cls_token_id", &TokenizerSpec::cls},
    IdKey{"tokenizer.ggml.mask_token_id", &TokenizerSpec::mask},
};
constexpr std::string_view kEomKey = "tokenizer.ggml.eom_token_id";

struct FlagKey {
    std::string_view key;
    std::optional<bool> TokenizerSpec::*flag;
};
constexpr std::array kFlagKeys{
    FlagKey{"tokenizer.ggml.add_bos_token", &TokenizerSpec::add_bos},
    FlagKey{"tokenizer.ggml.add_eos_token", &TokenizerSpec::add_eos},
    FlagKey{"tokenizer.ggml.add_space_prefix", &TokenizerSpec::add_space_prefix},
    FlagKey{"tokenizer.ggml.remove_extra_whitespaces", &TokenizerSpec::remove_extra_whitespaces},
    FlagKey{"tokenizer.ggml.normalizer.lowercase", &TokenizerSpec::lowercase},
    FlagKey{"tokenizer.ggml.normalizer.strip_accents", &TokenizerSpec::strip_accents},
};

constexpr std::string_view kModelKey = "tokenizer.ggml.model";
constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kTemplateKey = "tokenizer.chat_template";
constexpr std::string_view kTemplateNamesKey = "tokenizer.chat_templates";

Error key_error(std::string_view key, const std::string& reason) {
    return Error{ErrorCode::kDataLoss, fmt::format("key '{}' {}", key, reason), std::string(key)};
}

class SpecReader final {
  public:
    explicit SpecReader(const Metadata& metadata) : metadata_(metadata) {}

    Result<std::optional<TokenizerSpec>> read() {
        Result<const ModelName*> model = read_model();
        if (!model) return model.error();
        // A chat template alone, without a tokenizer, is of no use.
        if (*model == nullptr) return std::optional<TokenizerSpec>();
        spec_.kind = (*model)->kind;
        for (Status (SpecReader::*part)() :
             {&SpecReader::read_tokens, &SpecReader::read_types, &SpecReader::read_scores,
              &SpecReader::read_rules, &SpecReader::read_charsmap, &SpecReader::read_ids,
              &SpecReader::read_flags, &SpecReader::read_templates}) {
            if (Status done = (this->*part)(); !done) return done.error();
        }
        if (!(*model)->pre_tokenizer.empty()) spec_.pre_tokenizer = (*model)->pre_tokenizer;
        if ((*model)->adds_bos && spec_.bos) spec_.add_bos = true;
        add_known_strips(spec_, text_of("general.architecture"), text_of("general.name"));
        return std::optional(std::move(spec_));
    }

  private:
    [[nodiscard]] const MetaValue* find(std::string_view key) const {
        for (const auto& [name, value] : metadata_)
            if (name == key) return &value;
        return nullptr;
    }

    // The value of that type, null when the key is absent; `wanted` is "a string".
    template <class T>
    Result<const T*> find_typed(std::string_view key, std::string_view wanted) const {
        const MetaValue* value = find(key);
        if (value == nullptr) return static_cast<const T*>(nullptr);
        const T* typed = std::get_if<T>(value);
        if (typed == nullptr) return key_error(key, fmt::format("must be {}", wanted));
        return typed;
    }

    // The items of an array; an empty array may have been written with any type.
    template <class T>
    Result<const std::vector<T>*> find_items(std::string_view key, std::string_view wanted) const {
        static const std::vector<T> kNone;
        Result<const MetaArray*> array = find_typed<MetaArray>(key, wanted);
        if (!array) return array.error();
        if (*array == nullptr) return static_cast<const std::vector<T>*>(nullptr);
        if ((*array)->size() == 0) return &kNone;
        const auto* items = std::get_if<std::vector<T>>(&(*array)->items);
        if (items == nullptr) return key_error(key, fmt::format("must be {}", wanted));
        return items;
    }

    // Null when the file brings no tokenizer.
    Result<const ModelName*> read_model() const {
        Result<const std::string*> name = find_typed<std::string>(kModelKey, "a string");
        if (!name) return name.error();
        if (*name == nullptr || **name == "none" || **name == "no_vocab")
            return static_cast<const ModelName*>(nullptr);
        std::string known;
        for (const ModelName& model : kModelNames) {
            if (model.name == **name) return &model;
            known += fmt::format("{}{}", known.empty() ? "" : ", ", model.name);
        }
        return Error{ErrorCode::kUnsupported,
                     fmt::format("key '{}': tokenizer model '{}' is not supported; known are {}",
                                 kModelKey, printable(**name), known),
                     std::string(kModelKey)};
    }

    Status read_tokens() {
        Result<const std::vector<std::string>*> tokens =
            find_items<std::string>(kTokensKey, "an array of strings");
        if (!tokens) return tokens.error();
        if (*tokens == nullptr || (*tokens)->empty())
            return key_error(kTokensKey,
                             "is missing or empty, but the file names a tokenizer model");
        spec_.tokens = **tokens;
        return {};
    }

    [[nodiscard]] Status check_length(std::string_view key, std::size_t length) const {
        if (length == spec_.tokens.size()) return {};
        return key_error(
            key, fmt::format("has {} items, but there are {} tokens", length, spec_.tokens.size()));
    }

    Status read_types() {
        constexpr std::string_view kKey = "tokenizer.ggml.token_type";
        Result<const std::vector<std::int64_t>*> types =
            find_items<std::int64_t>(kKey, "an array of integers");
        if (!types) return types.error();
        if (*types == nullptr) return {};
        if (Status fits = check_length(kKey, (*types)->size()); !fits) return fits;
        spec_.types.reserve((*types)->size());
        for (std::size_t id = 0; id < (*types)->size(); ++id) {
            const std::int64_t type = (**types)[id];
            // 0 is the format's "undefined": nothing is special about the token.
            if (type < 0 || type > static_cast<std::int64_t>(TokenType::kByte))
                return key_error(
                    kKey, fmt::format("gives token {} the type {}; allowed are 0 to 6", id, type));
            spec_.types.push_back(type == 0 ? TokenType::kNormal : static_cast<TokenType>(type));
        }
        return {};
    }

    Status read_scores() {
        constexpr std::string_view kKey = "tokenizer.ggml.scores";
        Result<const std::vector<double>*> scores = find_items<double>(kKey, "an array of floats");
        if (!scores) return scores.error();
        if (*scores == nullptr) return {};
        if (Status fits = check_length(kKey, (*scores)->size()); !fits) return fits;
        spec_.scores.reserve((*scores)->size());
        for (const double score : **scores) {
            if (!(score >= -std::numeric_limits<float>::max() &&
                  score <= std::numeric_limits<float>::max()))
                return key_error(kKey, fmt::format("gives token {} a score that is not finite",
                                                   spec_.scores.size()));
            spec_.scores.push_back(static_cast<float>(score));
        }
        return {};
    }

    // Merges and the name of the pre-tokenizer.
    Status read_rules() {
        constexpr std::string_view kMergesKey = "tokenizer.ggml.merges";
        Result<const std::vector<std::string>*> merges =
            find_items<std::string>(kMergesKey, "an array of strings");
        if (!merges) return merges.error();
        if (*merges != nullptr) spec_.merges = **merges;
        for (std::size_t rank = 0; rank < spec_.merges.size(); ++rank) {
            // Two parts with a blank between; a part may itself start with a blank.
            const std::string& merge = spec_.merges[rank];
            const std::size_t blank = merge.find(' ', 1);
            if (blank == std::string::npos || blank + 1 == merge.size())
                return key_error(kMergesKey, fmt::format("has no pair at item {}: '{}'", rank,
                                                         printable(merge)));
        }
        Result<const std::string*> pre = find_typed<std::string>("tokenizer.ggml.pre", "a string");
        if (!pre) return pre.error();
        if (*pre != nullptr) spec_.pre_tokenizer = **pre;
        return {};
    }

    // Bytes, stored as an array of 8-bit numbers of either sign.
    Status read_charsmap() {
        constexpr std::string_view kKey = "tokenizer.ggml.precompiled_charsmap";
        Result<const std::vector<std::int64_t>*> bytes =
            find_items<std::int64_t>(kKey, "an array of bytes");
        if (!bytes) return bytes.error();
        if (*bytes == nullptr) return {};
        for (const std::int64_t byte : **bytes) {
            if (byte < -128 || byte > 255)
                return key_error(kKey, fmt::format("holds {}, which is no byte", byte));
            spec_.precompiled_charsmap.push_back(static_cast<char>(byte & 0xff));
        }
        return {};
    }

    Result<std::optional<TokenId>> read_id(std::string_view key) const {
        Result<const std::int64_t*> id = find_typed<std::int64_t>(key, "an integer");
        if (!id) return id.error();
        if (*id == nullptr) return std::optional<TokenId>();
        // How writers say "none" in a signed and in an unsigned number.
        if (**id == -1 || **id == std::numeric_limits<std::uint32_t>::max())
            return std::optional<TokenId>();
        if (**id < 0 || static_cast<std::uint64_t>(**id) >= spec_.tokens.size())
            return key_error(
                key, fmt::format("is {}, but there are {} tokens", **id, spec_.tokens.size()));
        return std::optional(static_cast<TokenId>(**id));
    }

    Status read_ids() {
        for (const IdKey& entry : kIdKeys) {
            Result<std::optional<TokenId>> id = read_id(entry.key);
            if (!id) return id.error();
            if (id->has_value()) spec_.*entry.id = **id;
        }
        Result<std::optional<TokenId>> end_of_message = read_id(kEomKey);
        if (!end_of_message) return end_of_message.error();
        if (end_of_message->has_value()) spec_.extra_eog.push_back(**end_of_message);
        return {};
    }

    Status read_flags() {
        for (const FlagKey& entry : kFlagKeys) {
            Result<const bool*> flag = find_typed<bool>(entry.key, "a boolean");
            if (!flag) return flag.error();
            if (*flag != nullptr) spec_.*entry.flag = **flag;
        }
        return {};
    }

    Status read_templates() {
        Result<const std::string*> main = find_typed<std::string>(kTemplateKey, "a string");
        if (!main) return main.error();
        if (*main != nullptr) spec_.chat_template = **main;
        const std::string prefix = std::string(kTemplateKey) + ".";
        for (const auto& [key, value] : metadata_) {
            if (key.size() <= prefix.size() || key.compare(0, prefix.size(), prefix) != 0) continue;
            const auto* source = std::get_if<std::string>(&value);
            if (source == nullptr) return key_error(printable(key), "must be a string");
            spec_.named_chat_templates.emplace_back(key.substr(prefix.size()), *source);
        }
        return check_template_names();
    }

    [[nodiscard]] Status check_template_names() const {
        Result<const std::vector<std::string>*> names =
            find_items<std::string>(kTemplateNamesKey, "an array of strings");
        if (!names) return names.error();
        if (*names == nullptr) return {};
        for (const std::string& name : **names) {
            const auto& named = spec_.named_chat_templates;
            const bool is_there = (name == "default" && !spec_.chat_template.empty()) ||
                                  std::any_of(named.begin(), named.end(), [&](const auto& entry) {
                                      return entry.first == name;
                                  });
            if (!is_there)
                return key_error(kTemplateNamesKey,
                                 fmt::format("lists '{}', but there is no key '{}.{}'",
                                             printable(name), kTemplateKey, printable(name)));
        }
        return {};
    }

    // A name that is no string is its reader's to refuse: nothing is known by it.
    [[nodiscard]] std::string_view text_of(std::string_view key) const {
        const MetaValue* value = find(key);
        const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
        return text == nullptr ? std::string_view() : std::string_view(*text);
    }

    const Metadata& metadata_;
    TokenizerSpec spec_;
};

}  // namespace

Result<std::optional<TokenizerSpec>> read_tokenizer_spec(const Metadata& metadata) {
    return SpecReader(metadata).read();
}

}  // namespace pagoda::formats
