#include "formats/tokenizer_metadata.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "text/end_of_generation.h"

namespace pagoda::formats {
namespace {

using text::TokenizerKind;
using text::TokenizerSpec;
using text::TokenType;
using Ints = std::vector<std::int64_t>;
using Strings = std::vector<std::string>;
using Floats = std::vector<double>;

constexpr std::string_view kPrefix = "tokenizer.ggml.";

MetaArray array(MetaArray::Items items) {
    return MetaArray{std::move(items)};
}

// A tokenizer of six tokens, with what a test adds or replaces.
Metadata with(const std::vector<std::pair<std::string, MetaValue>>& changes) {
    Metadata metadata{
        {"tokenizer.ggml.model", std::string("gpt2")},
        {"tokenizer.ggml.tokens",
         array(Strings{"a", "b", "ab", "<s>", "<|im_end|>", "<|endoftext|>"})},
        {"tokenizer.ggml.token_type", array(Ints{1, 1, 1, 3, 3, 3})},
        {"tokenizer.ggml.merges", array(Strings{"a b"})},
    };
    for (const auto& [name, value] : changes) {
        const std::string key =
            name.rfind("tokenizer.", 0) == 0 ? name : std::string(kPrefix) + name;
        std::erase_if(metadata, [&](const auto& entry) { return entry.first == key; });
        metadata.emplace_back(key, value);
    }
    return metadata;
}

TokenizerSpec accepted(const Metadata& metadata) {
    const auto spec = read_tokenizer_spec(metadata);
    EXPECT_TRUE(spec.ok()) << spec.error().message;
    EXPECT_TRUE(spec->has_value());
    return **spec;
}

void expect_refusal(const Metadata& metadata, const std::vector<std::string>& parts) {
    const auto spec = read_tokenizer_spec(metadata);
    const std::string message = spec.ok() ? "accepted" : spec.error().message;
    for (const std::string& part : parts)
        EXPECT_NE(message.find(part), std::string::npos)
            << "\"" << part << "\" is not in: " << message;
}

TEST(TokenizerMetadata, FillsEveryPart) {
    const TokenizerSpec spec = accepted(with({
        {"model", std::string("llama")},
        {"pre", std::string("default")},
        {"scores", array(Floats{0, -1, -2, 0, 0, 0})},
        {"token_type", array(Ints{1, 2, 4, 3, 5, 6})},
        {"bos_token_id", std::int64_t{3}},
        {"eos_token_id", std::int64_t{4}},
        {"eot_token_id", std::int64_t{5}},
        {"eom_token_id", std::int64_t{2}},
        {"unknown_token_id", std::int64_t{1}},
        {"seperator_token_id", std::int64_t{0}},
        {"padding_token_id", std::int64_t{5}},
        {"cls_token_id", std::int64_t{0}},
        {"mask_token_id", std::int64_t{1}},
        {"add_bos_token", true},
        {"add_eos_token", false},
        {"add_space_prefix", false},
        {"remove_extra_whitespaces", true},
        {"precompiled_charsmap", array(Ints{0, 255, 65, -1})},
        {"tokenizer.chat_template", std::string("main")},
        {"tokenizer.chat_template.tool_use", std::string("tools")},
        {"tokenizer.chat_templates", array(Strings{"default", "tool_use"})},
    }));
    EXPECT_EQ(spec.kind, TokenizerKind::kSentencePieceBpe);
    EXPECT_EQ(spec.pre_tokenizer, "default");
    EXPECT_EQ(spec.tokens.size(), 6U);
    EXPECT_EQ(spec.types[2], TokenType::kUserDefined);
    EXPECT_EQ(spec.scores[1], -1.0F);
    EXPECT_EQ(spec.merges, Strings{"a b"});
    EXPECT_EQ(spec.bos, 3);
    EXPECT_EQ(spec.eos, 4);
    EXPECT_EQ(spec.eot, 5);
    EXPECT_EQ(spec.unk, 1);
    EXPECT_EQ(spec.sep, 0);
    EXPECT_EQ(spec.pad, 5);
    EXPECT_EQ(spec.cls, 0);
    EXPECT_EQ(spec.mask, 1);
    EXPECT_EQ(spec.extra_eog, std::vector<base::TokenId>{2});
    EXPECT_EQ(spec.add_bos, true);
    EXPECT_EQ(spec.add_eos, false);
    EXPECT_EQ(spec.add_space_prefix, false);
    EXPECT_EQ(spec.remove_extra_whitespaces, true);
    EXPECT_EQ(spec.precompiled_charsmap, std::string("\x00\xff\x41\xff", 4));
    EXPECT_EQ(spec.chat_template, "main");
    ASSERT_EQ(spec.named_chat_templates.size(), 1U);
    EXPECT_EQ(spec.named_chat_templates[0].first, "tool_use");
    EXPECT_EQ(spec.named_chat_templates[0].second, "tools");
}

TEST(TokenizerMetadata, LeavesAbsentPartsEmpty) {
    const TokenizerSpec spec = accepted({{"tokenizer.ggml.model", std::string("bert")},
                                         {"tokenizer.ggml.tokens", array(Strings{"a"})}});
    EXPECT_EQ(spec.kind, TokenizerKind::kWordPiece);
    EXPECT_TRUE(spec.types.empty());
    EXPECT_TRUE(spec.scores.empty());
    EXPECT_FALSE(spec.bos.has_value());
    EXPECT_FALSE(spec.add_bos.has_value());
    EXPECT_TRUE(spec.chat_template.empty());
}

TEST(TokenizerMetadata, IsNoTokenizerWithoutAModelName) {
    EXPECT_FALSE(read_tokenizer_spec({})->has_value());
    EXPECT_FALSE(read_tokenizer_spec(with({{"model", std::string("none")}}))->has_value());
}

TEST(TokenizerMetadata, RefusesAnUnknownModelAndListsTheKnown) {
    expect_refusal(with({{"model", std::string("rwkv")}}),
                   {"tokenizer.ggml.model", "'rwkv'", "gpt2, llama, t5, bert, gemma4"});
}

TEST(TokenizerMetadata, RefusesListsThatDoNotFitTheTokens) {
    expect_refusal(with({{"tokens", array(Strings{})}}), {"tokenizer.ggml.tokens", "empty"});
    expect_refusal(with({{"token_type", array(Ints{1, 1})}}),
                   {"token_type", "2 items", "6 tokens"});
    expect_refusal(with({{"scores", array(Floats{1})}}), {"scores", "1 items", "6 tokens"});
    expect_refusal(with({{"token_type", array(Ints{1, 1, 7, 1, 1, 1})}}), {"token 2", "type 7"});
    expect_refusal(with({{"scores", array(Floats{0, 0, 0, 0, 0, 1.0 / 0.0})}}),
                   {"scores", "token 5", "not finite"});
    expect_refusal(with({{"merges", array(Strings{"a b", "ab"})}}), {"merges", "item 1", "'ab'"});
    expect_refusal(with({{"merges", array(Strings{"ab "})}}), {"merges", "item 0"});
}

TEST(TokenizerMetadata, TakesAMergeOfABlank) {
    EXPECT_EQ(accepted(with({{"merges", array(Strings{"  a"})}})).merges, Strings{"  a"});
}

TEST(TokenizerMetadata, RefusesIdsBeyondTheTokens) {
    expect_refusal(with({{"bos_token_id", std::int64_t{6}}}), {"bos_token_id", "is 6", "6 tokens"});
    expect_refusal(with({{"eos_token_id", std::int64_t{-2}}}), {"eos_token_id", "is -2"});
    expect_refusal(with({{"eom_token_id", std::int64_t{1} << 40}}),
                   {"eom_token_id", "1099511627776"});
    EXPECT_FALSE(accepted(with({{"padding_token_id", std::int64_t{-1}}})).pad.has_value());
    EXPECT_FALSE(accepted(with({{"padding_token_id", std::int64_t{0xffffffff}}})).pad.has_value());
}

TEST(TokenizerMetadata, RefusesValuesOfAWrongType) {
    expect_refusal(with({{"model", std::int64_t{1}}}), {"tokenizer.ggml.model", "string"});
    expect_refusal(with({{"tokens", array(Ints{1, 2})}}),
                   {"tokenizer.ggml.tokens", "array of strings"});
    expect_refusal(with({{"tokens", std::string("a")}}),
                   {"tokenizer.ggml.tokens", "array of strings"});
    expect_refusal(with({{"pre", true}}), {"tokenizer.ggml.pre", "string"});
    expect_refusal(with({{"bos_token_id", std::string("3")}}), {"bos_token_id", "integer"});
    expect_refusal(with({{"add_bos_token", std::int64_t{1}}}), {"add_bos_token", "boolean"});
    expect_refusal(with({{"precompiled_charsmap", array(Ints{256})}}),
                   {"precompiled_charsmap", "256"});
    expect_refusal(with({{"tokenizer.chat_template", std::int64_t{1}}}),
                   {"tokenizer.chat_template", "string"});
    expect_refusal(with({{"tokenizer.chat_template.rag", std::int64_t{1}}}),
                   {"tokenizer.chat_template.rag"});
}

TEST(TokenizerMetadata, RefusesATemplateNameWithoutATemplate) {
    expect_refusal(with({{"tokenizer.chat_templates", array(Strings{"rag"})}}),
                   {"tokenizer.chat_templates", "'rag'", "tokenizer.chat_template.rag"});
}

// Which texts end a turn is the tokenizer's to know, not the file reader's: here <|end|> only
// closes a part of the answer.
TEST(TokenizerMetadata, LeavesEndTokensThatTheFileDoesNotNameToTheTokenizer) {
    TokenizerSpec spec = accepted(
        with({{"tokens", array(Strings{"a", "<|end|>", "<|flush|>", "<|calls|>", "<|im_end|>"})},
              {"token_type", array(Ints{1, 3, 3, 3, 3})},
              {"merges", array(Strings{})}}));
    EXPECT_TRUE(spec.extra_eog.empty());
    EXPECT_EQ(text::end_of_generation(spec), (std::vector<base::TokenId>{2, 3, 4}));
}

TEST(TokenizerMetadata, MapsTheNormalizerOfWordPiece) {
    const TokenizerSpec spec = accepted(with({{"model", std::string("bert")},
                                              {"normalizer.lowercase", false},
                                              {"normalizer.strip_accents", true}}));
    EXPECT_EQ(spec.lowercase, false);
    EXPECT_EQ(spec.strip_accents, true);
    EXPECT_FALSE(accepted(with({})).lowercase.has_value());
    EXPECT_FALSE(accepted(with({})).strip_accents.has_value());
    expect_refusal(with({{"normalizer.lowercase", std::int64_t{1}}}),
                   {"tokenizer.ggml.normalizer.lowercase", "boolean"});
}

TEST(TokenizerMetadata, ReadsGemma4AsMergesOverCharactersWithBos) {
    const TokenizerSpec spec = accepted(with({{"model", std::string("gemma4")},
                                              {"pre", std::string("default")},
                                              {"bos_token_id", std::int64_t{3}},
                                              {"add_bos_token", false}}));
    EXPECT_EQ(spec.kind, TokenizerKind::kByteLevelBpe);
    EXPECT_EQ(spec.pre_tokenizer, "gemma4");
    EXPECT_EQ(spec.add_bos, true);
    // Nothing asks for a token that is not there.
    EXPECT_FALSE(accepted(with({{"model", std::string("gemma4")}})).add_bos.has_value());
}

TEST(TokenizerMetadata, KnowsByTheModelsNameWhichMarkersStrip) {
    EXPECT_EQ(accepted(with({{"tokenizer.ggml.model", std::string("llama")}})).rstrip.size(), 0U);
    Metadata metadata = with({});
    metadata.emplace_back("general.architecture", std::string("phi3"));
    metadata.emplace_back("general.name", std::string("Phi-3 mini"));
    EXPECT_EQ(accepted(metadata).rstrip, (std::vector<base::TokenId>{4}));
}

}  // namespace
}  // namespace pagoda::formats
