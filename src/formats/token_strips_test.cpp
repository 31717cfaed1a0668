#include "formats/token_strips.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pagoda::formats {
namespace {

using Ids = std::vector<base::TokenId>;
using text::TokenizerSpec;
using text::TokenType;

TokenizerSpec markers() {
    TokenizerSpec spec;
    spec.tokens = {"<unk>", "<s>", "</s>", "<|endoftext|>", "<|user|>", "<|end|>", "<mask>", "a"};
    spec.types = {TokenType::kUnknown,     TokenType::kControl, TokenType::kUserDefined,
                  TokenType::kControl,     TokenType::kControl, TokenType::kControl,
                  TokenType::kUserDefined, TokenType::kNormal};
    return spec;
}

TokenizerSpec with_strips(std::string_view pre_tokenizer, std::string_view architecture,
                          std::string_view name) {
    TokenizerSpec spec = markers();
    spec.pre_tokenizer = pre_tokenizer;
    add_known_strips(spec, architecture, name);
    return spec;
}

TEST(TokenStrips, MarkersOfPhi3TakeWhatFollowsThem) {
    for (const char* name : {"Phi 3 toy Phi-3-mini", "PHI3", "Phi-3.5-mini-instruct"}) {
        const TokenizerSpec spec = with_strips("default", "phi3", name);
        EXPECT_EQ(spec.rstrip, (Ids{2, 4, 5, 6})) << name;
        EXPECT_EQ(spec.lstrip, Ids{}) << name;
    }
}

TEST(TokenStrips, AMaskTokenTakesTheBlankBeforeIt) {
    EXPECT_EQ(with_strips("jina-v2-de", "jina-bert-v2", "x").lstrip, Ids{6});
    EXPECT_EQ(with_strips("", "nomic-bert-moe", "x").lstrip, Ids{6});
    EXPECT_EQ(with_strips("jina-v2-de", "jina-bert-v2", "x").rstrip, Ids{});
    TokenizerSpec spec = markers();
    spec.tokens[5] = "[MASK]";
    add_known_strips(spec, "modern-bert", "some Modern-BERT base");
    EXPECT_EQ(spec.lstrip, Ids{5});
}

TEST(TokenStrips, OtherModelsStripNothing) {
    for (const auto& [pre, architecture, name] :
         std::vector<std::array<std::string, 3>>{{"qwen2", "qwen2", "Qwen2"},
                                                 {"default", "phi3", "toy phi"},
                                                 {"jina-v2", "bert", "mask"},
                                                 {"", "", ""}}) {
        const TokenizerSpec spec = with_strips(pre, architecture, name);
        EXPECT_EQ(spec.lstrip, Ids{}) << name;
        EXPECT_EQ(spec.rstrip, Ids{}) << name;
    }
}

TEST(TokenStrips, AVocabularyWithoutTheTokenStripsNothing) {
    TokenizerSpec spec;
    spec.tokens = {"a"};
    add_known_strips(spec, "jina-bert-v3", "x");
    add_known_strips(spec, "phi3", "Phi-3");
    EXPECT_EQ(spec.lstrip, Ids{});
    EXPECT_EQ(spec.rstrip, Ids{});
}

}  // namespace
}  // namespace pagoda::formats
