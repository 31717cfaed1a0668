#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include "text/end_of_generation.h"
#include "text/vocabulary_for_test.h"

namespace pagoda::text {
namespace {

using base::TokenId;
using Ids = std::vector<TokenId>;
using Ends = EncodeOptions::SpecialEnds;

std::unique_ptr<Tokenizer> make(TokenizerSpec spec) {
    auto tokenizer = Tokenizer::create(std::move(spec));
    EXPECT_TRUE(tokenizer.ok()) << (tokenizer.ok() ? "" : tokenizer.error().message);
    return std::move(tokenizer).value();
}

Ids encode(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
    auto ids = tokenizer.encode(text, options);
    EXPECT_TRUE(ids.ok());
    return std::move(ids).value();
}

std::string create_error(TokenizerSpec spec) {
    auto tokenizer = Tokenizer::create(std::move(spec));
    return tokenizer.ok() ? "" : tokenizer.error().message;
}

TEST(Tokenizer, JoinsTheBestPairFirst) {
    const TokenizerSpec spec = test::byte_level_spec({"b c", "a b", "a bc"});
    const auto tokenizer = make(spec);
    EXPECT_EQ(encode(*tokenizer, "abc"), Ids{test::id_of(spec, "abc")});
    EXPECT_EQ(encode(*tokenizer, "ab"), Ids{test::id_of(spec, "ab")});
    EXPECT_EQ(encode(*tokenizer, "abab"), (Ids{test::id_of(spec, "ab"), test::id_of(spec, "ab")}));
}

TEST(Tokenizer, LongWordsMergeAsShortOnesDo) {
    const TokenizerSpec spec = test::byte_level_spec({"a b", "ab ab", "abab c"});
    const auto tokenizer = make(spec);
    Ids expected;
    std::string text;
    for (int i = 0; i < 1000; ++i) {
        text += "ababc";
        expected.push_back(test::id_of(spec, "ababc"));
    }
    EXPECT_EQ(encode(*tokenizer, text), expected);
}

TEST(Tokenizer, AWordOfTheVocabularyWinsOnlyWhereTheRuleIgnoresMerges) {
    TokenizerSpec spec = test::byte_level_spec({"a b"}, "gpt-2");
    const TokenId whole = test::add_token(spec, "xyz", TokenType::kNormal);
    EXPECT_EQ(encode(*make(spec), "xyz").size(), 3U);
    spec.pre_tokenizer = "llama-bpe";
    EXPECT_EQ(encode(*make(spec), "xyz"), Ids{whole});
}

TEST(Tokenizer, UnknownPreTokenizerIsRefusedWithTheKnownNames) {
    const std::string message = create_error(test::byte_level_spec({}, "no-such-rule"));
    EXPECT_NE(message.find("\"no-such-rule\""), std::string::npos) << message;
    EXPECT_NE(message.find("qwen2"), std::string::npos) << message;
}

TEST(Tokenizer, ContradictionsInTheSpecAreRefused) {
    TokenizerSpec spec = test::byte_level_spec({});
    spec.types.pop_back();
    EXPECT_EQ(create_error(spec), "255 token types for 256 tokens");
    spec = test::byte_level_spec({});
    spec.eos = 256;
    EXPECT_EQ(create_error(spec), "the EOS token is 256, but the vocabulary has 256 tokens");
    spec = test::byte_level_spec({"a b"});
    spec.merges.push_back("b c");
    EXPECT_EQ(create_error(spec), "merge 1 \"b c\": what it joins to is not in the vocabulary");
    spec = test::byte_level_spec({});
    spec.merges.push_back("ab");
    EXPECT_EQ(create_error(spec), "merge 0 \"ab\" is not two parts with a space between");
    spec = test::byte_level_spec({});
    spec.add_bos = true;
    EXPECT_EQ(create_error(spec), "the model asks for a BOS token, but names none");
    EXPECT_NE(create_error(TokenizerSpec{}), "");
}

TEST(Tokenizer, SpecialTokensAreFoundLeftmostAndLongest) {
    TokenizerSpec spec = test::byte_level_spec({});
    const TokenId a = test::add_token(spec, "<a>", TokenType::kControl);
    const TokenId aa = test::add_token(spec, "<a><a>", TokenType::kControl);
    const TokenId user = test::add_token(spec, "<u>", TokenType::kUserDefined);
    const auto tokenizer = make(spec);
    EXPECT_EQ(encode(*tokenizer, "<a><a><a>x<u>"), (Ids{aa, a, 'x', user}));
    const Ids plain = encode(*tokenizer, "<a><u>", {.parse_special = false});
    EXPECT_EQ(plain, (Ids{'<', 'a', '>', user}));
}

TEST(Tokenizer, SpecialTokensTakeTheWhiteSpaceThatTheyStrip) {
    TokenizerSpec spec = test::byte_level_spec({});
    const TokenId mask = test::add_token(spec, "<mask>", TokenType::kUserDefined);
    const TokenId user = test::add_token(spec, "<|user|>", TokenType::kControl);
    const TokenId plain = test::add_token(spec, "<|plain|>", TokenType::kControl);
    spec.lstrip = {mask};
    spec.rstrip = {user};
    const auto tokenizer = make(spec);
    EXPECT_EQ(encode(*tokenizer, "a <mask> b"), (Ids{'a', mask, ' ', 'b'}));
    EXPECT_EQ(encode(*tokenizer, "<|user|>\n a <|user|>"), (Ids{user, 'a', ' ', user}));
    EXPECT_EQ(encode(*tokenizer, " <|plain|> "), (Ids{' ', plain, ' '}));
    // White space as Unicode has it, and never more than there is between two special tokens.
    EXPECT_EQ(encode(*tokenizer, "a\u3000\u00A0<mask>"), (Ids{'a', mask}));
    EXPECT_EQ(encode(*tokenizer, "<|plain|> \t<mask>\u2003"), (Ids{plain, mask, 0xE2, 0x80, 0x83}));
    EXPECT_EQ(encode(*tokenizer, "<|user|> <mask>"), (Ids{user, mask}));
    // Text that is not parsed for control tokens keeps all it has.
    EXPECT_EQ(encode(*tokenizer, "<|user|> a", {.parse_special = false}).size(), 10U);
}

TEST(Tokenizer, StrippingTokensMustBeInTheVocabulary) {
    TokenizerSpec spec = test::byte_level_spec({});
    spec.rstrip = {256};
    EXPECT_EQ(create_error(spec), "the rstrip token is 256, but the vocabulary has 256 tokens");
}

TEST(Tokenizer, ASpecialTokenThatIsNoTextNeverCutsACharacter) {
    TokenizerSpec spec = test::byte_level_spec({});
    test::add_token(spec, "\xC3", TokenType::kControl);
    EXPECT_EQ(encode(*make(spec), "\u00E9"), (Ids{0xC3, 0xA9}));
}

TEST(Tokenizer, BosAndEosAreAddedAsTheModelAsks) {
    TokenizerSpec spec = test::byte_level_spec({});
    spec.bos = test::add_token(spec, "<bos>", TokenType::kControl);
    spec.eos = test::add_token(spec, "<end>", TokenType::kControl);
    EXPECT_EQ(encode(*make(spec), "a"), Ids{'a'});
    EXPECT_EQ(encode(*make(spec), "a", {.ends = Ends::kForceBos}), (Ids{*spec.bos, 'a'}));
    spec.add_bos = true;
    spec.add_eos = true;
    EXPECT_EQ(encode(*make(spec), "a"), (Ids{*spec.bos, 'a', *spec.eos}));
    EXPECT_EQ(encode(*make(spec), "", {}), (Ids{*spec.bos, *spec.eos}));
    EXPECT_EQ(encode(*make(spec), "a", {.ends = Ends::kNone}), Ids{'a'});
    spec.add_bos.reset();
    spec.add_eos.reset();
    spec.pre_tokenizer = "llama-bpe";
    EXPECT_EQ(encode(*make(spec), "a"), (Ids{*spec.bos, 'a'}));
}

TEST(Tokenizer, InvalidUtf8IsReplacedBeforeTokenizing) {
    const auto tokenizer = make(test::byte_level_spec({}));
    for (const std::string_view bad :
         {"\x80", "\xF0\x9F\x8D", "\xED\xA0\x80", "\xC0\xAF", "a\xFF"}) {
        EXPECT_EQ(tokenizer->decode(encode(*tokenizer, bad), true),
                  base::replace_invalid_utf8(bad));
    }
}

TEST(Tokenizer, LongInputCanBeCancelled) {
    const auto tokenizer = make(test::byte_level_spec({"a a"}));
    int asked = 0;
    EncodeOptions options;
    options.is_cancelled = [](void* count) { return ++*static_cast<int*>(count) > 1; };
    options.cancel_context = &asked;
    const auto result = tokenizer->encode(std::string(1'000'000, 'a'), options);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, base::ErrorCode::kCancelled);
    EXPECT_EQ(asked, 2);
}

TEST(Tokenizer, ATextHasAtLeastTheTokensThatItsLengthTells) {
    TokenizerSpec spec = test::byte_level_spec({"a a", "aa aa"});
    EXPECT_EQ(make(spec)->least_tokens(""), 0);
    EXPECT_EQ(make(spec)->least_tokens("aaaaaaaa!"), 3);
    EXPECT_EQ(encode(*make(spec), "aaaaaaaa!").size(), 3U) << "and there need be no more";
    // What the vocabulary can't spell is dropped.
    spec.tokens[7] = "none";
    EXPECT_EQ(make(spec)->least_tokens("\x07\x07\x07\x07\x07"
                                       "a"),
              1);
    EXPECT_EQ(encode(*make(spec),
                     "\x07\x07\x07\x07\x07"
                     "a")
                  .size(),
              1U);
}

TEST(Tokenizer, WhereATokenMayTakeAnyLengthOfTextNothingIsTold) {
    const std::string text(1000, 'a');
    TokenizerSpec strips = test::byte_level_spec({});
    strips.rstrip = {test::add_token(strips, "<m>", TokenType::kControl)};
    EXPECT_EQ(make(strips)->least_tokens(text), 0);
    for (const TokenizerKind kind : {TokenizerKind::kUnigram, TokenizerKind::kWordPiece})
        EXPECT_EQ(make(test::pieces_spec(kind, {"a"}, true))->least_tokens(text), 0);
    for (const bool has_bytes : {false, true}) {
        const auto pieces =
            make(test::pieces_spec(TokenizerKind::kSentencePieceBpe, {"a"}, has_bytes));
        EXPECT_EQ(pieces->least_tokens(text) > 0, has_bytes);
    }
}

TEST(Tokenizer, ControlTokensAreShownOnlyOnDemand) {
    TokenizerSpec spec = test::byte_level_spec({});
    const TokenId marker = test::add_token(spec, "<|x|>", TokenType::kControl);
    const TokenId user = test::add_token(spec, "<think>", TokenType::kUserDefined);
    const auto tokenizer = make(spec);
    const Ids ids = {'a', marker, user, 'b'};
    EXPECT_EQ(tokenizer->decode(ids, true), "a<think>b");
    EXPECT_EQ(tokenizer->decode(ids, false), "a<|x|><think>b");
    EXPECT_EQ(tokenizer->token_bytes(marker, true), "");
    EXPECT_EQ(tokenizer->token_bytes(-1, false), "");
    EXPECT_EQ(tokenizer->token_bytes(9999, false), "");
}

TEST(Tokenizer, EveryEndMarkerEndsGeneration) {
    TokenizerSpec spec = test::byte_level_spec({});
    const TokenId im_end = test::add_token(spec, "<|im_end|>", TokenType::kUserDefined);
    const TokenId text_end = test::add_token(spec, "<|endoftext|>", TokenType::kControl);
    const TokenId listed = test::add_token(spec, "<stop-here>", TokenType::kControl);
    const TokenId wide =
        test::add_token(spec, "<\uFF5Cend\u2581of\u2581sentence\uFF5C>", TokenType::kControl);
    const TokenId ordinary = test::add_token(spec, "</s>", TokenType::kNormal);
    spec.eos = im_end;
    spec.extra_eog = {listed};
    const auto tokenizer = make(spec);
    EXPECT_TRUE(tokenizer->is_end_of_generation(im_end));
    EXPECT_TRUE(tokenizer->is_end_of_generation(text_end));
    EXPECT_TRUE(tokenizer->is_end_of_generation(listed));
    EXPECT_TRUE(tokenizer->is_end_of_generation(wide));
    EXPECT_FALSE(tokenizer->is_end_of_generation(ordinary));
    EXPECT_TRUE(tokenizer->is_special(im_end)) << "the marker is never printed";
}

TEST(Tokenizer, ATagOfHtmlDoesNotEndTheAnswerOfAModelWhoseTurnsEndOtherwise) {
    TokenizerSpec spec = test::byte_level_spec({});
    const TokenId tag = test::add_token(spec, "</s>", TokenType::kUserDefined);
    EXPECT_TRUE(make(spec)->is_end_of_generation(tag));
    const TokenId end = test::add_token(spec, "<end_of_turn>", TokenType::kControl);
    const auto tokenizer = make(spec);
    EXPECT_FALSE(tokenizer->is_end_of_generation(tag));
    EXPECT_TRUE(tokenizer->is_end_of_generation(end));
    EXPECT_EQ(tokenizer->decode(encode(*tokenizer, "x</s>"), true), "x</s>");
}

TEST(Tokenizer, TheEndOfOneChannelIsNotTheEndOfTheAnswer) {
    TokenizerSpec spec = test::byte_level_spec({});
    const TokenId end = test::add_token(spec, "<|end|>", TokenType::kControl);
    EXPECT_TRUE(make(spec)->is_end_of_generation(end));
    const TokenId done = test::add_token(spec, "<|return|>", TokenType::kControl);
    EXPECT_FALSE(make(spec)->is_end_of_generation(end));
    EXPECT_TRUE(make(spec)->is_end_of_generation(done));
    EXPECT_EQ(end_tokens_by_name(spec), Ids{done});
    spec.extra_eog = {end};  // but a file may say so
    EXPECT_EQ(end_of_generation(spec), (Ids{end, done}));
}

}  // namespace
}  // namespace pagoda::text
