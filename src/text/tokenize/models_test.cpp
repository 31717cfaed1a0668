// SentencePiece BPE, unigram and WordPiece, through Tokenizer.
#include <gtest/gtest.h>

#include "text/tokenizer.h"
#include "text/vocabulary_for_test.h"

namespace pagoda::text {
namespace {

using Ends = EncodeOptions::SpecialEnds;
using Words = std::vector<std::string>;

std::unique_ptr<Tokenizer> make(TokenizerSpec spec) {
    auto tokenizer = Tokenizer::create(std::move(spec));
    EXPECT_TRUE(tokenizer.ok()) << (tokenizer.ok() ? "" : tokenizer.error().message);
    return std::move(tokenizer).value();
}

Words encode(const TokenizerSpec& spec, std::string_view text, Ends ends = Ends::kNone) {
    const auto tokenizer = make(spec);
    const auto ids = tokenizer->encode(text, {.ends = ends});
    EXPECT_TRUE(ids.ok());
    Words words;
    for (const base::TokenId id : *ids) words.push_back(spec.tokens[static_cast<std::size_t>(id)]);
    return words;
}

std::string error_of(TokenizerSpec spec) {
    const auto tokenizer = Tokenizer::create(std::move(spec));
    return tokenizer.ok() ? "" : tokenizer.error().message;
}

constexpr auto kSpm = TokenizerKind::kSentencePieceBpe;

TEST(SentencePiece, TheBestScoredPairJoinsFirst) {
    const TokenizerSpec spec = test::pieces_spec(kSpm, {"bc", "ab", "a", "b", "c", "\u2581"}, true);
    EXPECT_EQ(encode(spec, "abc"), (Words{"\u2581", "a", "bc"}));
    EXPECT_EQ(encode(spec, "ab"), (Words{"\u2581", "ab"}));
}

TEST(SentencePiece, ASpaceGoesInFrontOfEveryTextAfterASpecialToken) {
    TokenizerSpec spec = test::pieces_spec(kSpm, {"\u2581a", "\u2581\u2581", "a", "\u2581"}, true);
    test::add_token(spec, "[INST]", TokenType::kControl);
    EXPECT_EQ(encode(spec, "a[INST]a"), (Words{"\u2581a", "[INST]", "\u2581a"}));
    EXPECT_EQ(encode(spec, "[INST] a"), (Words{"[INST]", "\u2581", "\u2581a"}));
    EXPECT_EQ(encode(spec, "[INST][INST]"), (Words{"[INST]", "[INST]"}));
    EXPECT_EQ(encode(spec, "a", Ends::kModel), (Words{"<s>", "\u2581a"}));
    spec.add_space_prefix = false;
    EXPECT_EQ(encode(spec, "a[INST] a"), (Words{"a", "[INST]", "\u2581a"}));
}

TEST(SentencePiece, UnknownCharactersBecomeBytesOrOneUnknownToken) {
    const TokenizerSpec with_bytes = test::pieces_spec(kSpm, {"a", "\u2581"}, true);
    EXPECT_EQ(encode(with_bytes, "\u00E9"), (Words{"\u2581", "<0xC3>", "<0xA9>"}));
    const TokenizerSpec without = test::pieces_spec(kSpm, {"a", "\u2581"}, false);
    EXPECT_EQ(encode(without, "\u00E9\u00E9a\u00E9"), (Words{"\u2581", "<unk>", "a", "<unk>"}));
}

TEST(SentencePiece, TextThatSpellsAByteTokenIsText) {
    const TokenizerSpec spec = test::pieces_spec(kSpm, {"\u2581", "<", ">", "0", "x", "A"}, true);
    EXPECT_EQ(encode(spec, "<0x0A>"), (Words{"\u2581", "<", "0", "x", "0", "A", ">"}));
}

TEST(SentencePiece, UnusedTokensAreStepsOnly) {
    TokenizerSpec spec = test::pieces_spec(kSpm, {"\u2581", "abc", "ab", "a", "b", "c"}, true);
    spec.types[static_cast<std::size_t>(test::id_of(spec, "ab"))] = TokenType::kUnused;
    EXPECT_EQ(encode(spec, "abc"), (Words{"\u2581", "abc"}));
    EXPECT_EQ(encode(spec, "abb"), (Words{"\u2581", "a", "b", "b"}));
}

TEST(SentencePiece, NeedsScoresAndAWayOutForUnknownCharacters) {
    TokenizerSpec spec = test::pieces_spec(kSpm, {"a"}, true);
    spec.scores.clear();
    EXPECT_EQ(error_of(spec), "a SentencePiece vocabulary needs token scores, but has none");
    spec = test::pieces_spec(kSpm, {"a"}, false);
    spec.unk.reset();
    spec.tokens[0] = "no-name";
    EXPECT_EQ(error_of(spec), "the vocabulary has neither an unknown token nor one for byte 0x00");
    spec = test::pieces_spec(kSpm, {"a"}, false);
    test::add_token(spec, "<0xG0>", TokenType::kByte);
    EXPECT_EQ(error_of(spec),
              "token 4 is of type byte, but its text is \"<0xG0>\", not like <0x0A>");
}

constexpr auto kUni = TokenizerKind::kUnigram;

TEST(Unigram, TakesTheCutOfTheGreatestSum) {
    TokenizerSpec spec = test::pieces_spec(kUni, {"\u2581", "ab", "bc", "a", "b", "c"}, false);
    // ab + c = -2 - 6, a + bc = -4 - 3.
    EXPECT_EQ(encode(spec, "abc"), (Words{"\u2581", "a", "bc"}));
    EXPECT_EQ(encode(spec, "ab", Ends::kModel), (Words{"\u2581", "ab", "</s>"}));
}

TEST(Unigram, BlanksAreMergedWhereTheModelSaysSo) {
    TokenizerSpec spec = test::pieces_spec(kUni, {"\u2581a", "\u2581", "a"}, false);
    EXPECT_EQ(encode(spec, "  a  a "),
              (Words{"\u2581", "\u2581", "\u2581a", "\u2581", "\u2581a", "\u2581"}));
    spec.remove_extra_whitespaces = true;
    EXPECT_EQ(encode(spec, "  a  a "), (Words{"\u2581a", "\u2581a"}));
    EXPECT_EQ(encode(spec, "   "), Words{});
}

TEST(Unigram, NeighbouringUnknownCharactersAreOneToken) {
    const TokenizerSpec spec = test::pieces_spec(kUni, {"\u2581", "a"}, false);
    EXPECT_EQ(encode(spec, "\u00E9\u00E9a\u00E9"), (Words{"\u2581", "<unk>", "a", "<unk>"}));
    const TokenizerSpec with_bytes = test::pieces_spec(kUni, {"\u2581", "a"}, true);
    EXPECT_EQ(encode(with_bytes, "\u00E9"), (Words{"\u2581", "<0xC3>", "<0xA9>"}));
}

constexpr auto kWp = TokenizerKind::kWordPiece;

TokenizerSpec wordpiece_spec() {
    TokenizerSpec spec = test::pieces_spec(
        kWp, {"\u2581un", "aff", "able", "\u2581caf", "e", "\u2581,", "\u2581\u4F60", "\u2581u"},
        false);
    spec.cls = test::add_token(spec, "[CLS]", TokenType::kControl);
    spec.sep = test::add_token(spec, "[SEP]", TokenType::kControl);
    return spec;
}

TEST(WordPiece, SpellsWordsByTheLongestTokens) {
    EXPECT_EQ(encode(wordpiece_spec(), "Unaffable"), (Words{"\u2581un", "aff", "able"}));
    EXPECT_EQ(encode(wordpiece_spec(), "unaffordable un"), (Words{"<unk>", "\u2581un"}));
    EXPECT_EQ(encode(wordpiece_spec(), "un", Ends::kModel), (Words{"[CLS]", "\u2581un", "[SEP]"}));
}

TEST(WordPiece, CleansLowersAndStripsAccents) {
    EXPECT_EQ(encode(wordpiece_spec(), "CAF\u00C9,un\u4F60un\x01"),
              (Words{"\u2581caf", "e", "\u2581,", "\u2581un", "\u2581\u4F60", "\u2581un"}));
    TokenizerSpec cased = wordpiece_spec();
    cased.lowercase = false;
    EXPECT_EQ(encode(cased, "Un"), Words{"<unk>"});
}

TEST(WordPiece, DecodesWithoutTheFirstSpace) {
    const auto tokenizer = make(wordpiece_spec());
    const auto ids = tokenizer->encode("unaffable, un", {});
    EXPECT_EQ(tokenizer->decode(*ids, true), "unaffable , un");
}

// Merges over characters, U+2581 for spaces, byte tokens for the rest.
TEST(CharacterBpe, SpellsWhatTheVocabularyLacksInBytes) {
    TokenizerSpec spec;
    spec.pre_tokenizer = "gemma4";
    spec.bos = test::add_token(spec, "<bos>", TokenType::kControl);
    for (const char* token : {"\u2581", "a", "\u2581a", "\n", "\n\n"}) {
        test::add_token(spec, token, TokenType::kNormal);
    }
    test::add_token(spec, "<0xC3>", TokenType::kByte);
    test::add_token(spec, "<0xA9>", TokenType::kByte);
    spec.merges = {"\u2581 a"};
    EXPECT_EQ(encode(spec, "a a\n\n\u00E9"), (Words{"a", "\u2581a", "\n\n", "<0xC3>", "<0xA9>"}));
    const auto tokenizer = make(spec);
    const auto ids = tokenizer->encode("a a\n\n\u00E9", {});
    EXPECT_EQ(tokenizer->decode(*ids, true), "a a\n\n\u00E9");
    EXPECT_EQ(ids->front(), *spec.bos);
}

}  // namespace
}  // namespace pagoda::text
