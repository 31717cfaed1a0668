#include "text/detokenizer.h"

#include <random>

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "text/vocabulary_for_test.h"

namespace pagoda::text {
namespace {

using base::TokenId;
using Ids = std::vector<TokenId>;

std::unique_ptr<Tokenizer> make(TokenizerSpec spec) {
    auto tokenizer = Tokenizer::create(std::move(spec));
    EXPECT_TRUE(tokenizer.ok()) << (tokenizer.ok() ? "" : tokenizer.error().message);
    return std::move(tokenizer).value();
}

std::unique_ptr<Tokenizer> byte_tokenizer() {
    TokenizerSpec spec = test::byte_level_spec({});
    test::add_token(spec, "<|im_end|>", TokenType::kControl);
    test::add_token(spec, "<think>", TokenType::kUserDefined);
    return make(std::move(spec));
}

// Pieces with punctuation, CJK and Thai beside all bytes.
std::unique_ptr<Tokenizer> piece_tokenizer() {
    return make(test::pieces_spec(TokenizerKind::kSentencePieceBpe,
                                  {"\u2581", "\u2581the", "a", ",", ".", "\u2581\u2581",
                                   "\u4F60\u597D", "\u0E01\u0E33", "\u0301", "b", "\u2581a"},
                                  true));
}

std::string stream(const Tokenizer& tokenizer, const Ids& ids, std::size_t flush_every) {
    Detokenizer detokenizer(tokenizer, true);
    std::string text;
    std::string chunk;
    std::size_t count = 0;
    const auto flush = [&] {
        EXPECT_TRUE(base::is_valid_utf8(chunk));
        text += chunk;
        chunk.clear();
    };
    for (const TokenId id : ids) {
        chunk += detokenizer.append(id);
        if (++count % flush_every == 0) flush();
    }
    chunk += detokenizer.finish();
    flush();
    return text;
}

TEST(Detokenizer, ChunksOfAnyIdsJoinToTheWholeDecode) {
    std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): a fixed seed
    for (const auto& tokenizer : {byte_tokenizer(), piece_tokenizer()}) {
        for (int round = 0; round < 400; ++round) {
            Ids ids(random() % 60);
            for (TokenId& id : ids) {
                id =
                    static_cast<TokenId>(random() % static_cast<unsigned>(tokenizer->vocab_size()));
            }
            const std::string whole = base::replace_invalid_utf8(tokenizer->decode(ids, true));
            for (const std::size_t flush_every : {1U, 3U, 8U}) {
                EXPECT_EQ(stream(*tokenizer, ids, flush_every), whole);
            }
        }
    }
}

TEST(Detokenizer, TextComesBackWhole) {
    const auto pieces = piece_tokenizer();
    const auto bytes = byte_tokenizer();
    for (const std::string_view text : {" the a, b.", "\u4F60\u597D\u3002the",
                                        "\u0E01\u0E33 \u0E02a  ", "a\u0301", "  a", "\t\n"}) {
        for (const Tokenizer* tokenizer : {pieces.get(), bytes.get()}) {
            const auto ids = tokenizer->encode(text, {.ends = EncodeOptions::SpecialEnds::kNone});
            EXPECT_EQ(stream(*tokenizer, *ids, 1), text);
        }
    }
}

TEST(Detokenizer, HoldsACharacterBackUntilItIsWhole) {
    const auto tokenizer = byte_tokenizer();
    Detokenizer detokenizer(*tokenizer, true);
    EXPECT_EQ(detokenizer.append(0xF0), "");
    EXPECT_EQ(detokenizer.append(0x9F), "");
    EXPECT_EQ(detokenizer.append(0x98), "");
    EXPECT_EQ(detokenizer.append(0x80), "\U0001F600");
    EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, EachMaximalBadPartIsOneReplacement) {
    const auto tokenizer = byte_tokenizer();
    const struct {
        Ids bytes;
        std::string text;
    } rows[] = {
        {{0x80}, "\uFFFD"},                          // a lone continuation
        {{0xC0, 0xAF}, "\uFFFD\uFFFD"},              // overlong
        {{0xED, 0xA0, 0x80}, "\uFFFD\uFFFD\uFFFD"},  // a surrogate
        {{0xFF, 'a'}, "\uFFFDa"},                    //
        {{0xF0, 0x9F, 0x98, 'a'}, "\uFFFDa"},        // cut short
        {{0xE2, 0x82}, "\uFFFD"},                    // unfinished at the end
        {{'a', 0xF0, 0x9F}, "a\uFFFD"},
    };
    for (const auto& row : rows) EXPECT_EQ(stream(*tokenizer, row.bytes, 1), row.text);
}

TEST(Detokenizer, AnUnfinishedTailIsFlushedOnce) {
    const auto tokenizer = byte_tokenizer();
    Detokenizer detokenizer(*tokenizer, true);
    EXPECT_EQ(detokenizer.append(0xE2), "");
    EXPECT_EQ(detokenizer.finish(), "\uFFFD");
    EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, ControlTokensAreLeftOutOnDemand) {
    const auto tokenizer = byte_tokenizer();
    const Ids ids = {'a', 256, 257};
    EXPECT_EQ(stream(*tokenizer, ids, 1), "a<think>");
    Detokenizer shows_all(*tokenizer, false);
    EXPECT_EQ(shows_all.append(256), "<|im_end|>");
}

TEST(Detokenizer, TheLeadingSpaceDependsOnWhatCameBefore) {
    const auto tokenizer = piece_tokenizer();
    const TokenId the = test::id_of(tokenizer->spec(), "\u2581the");
    const TokenId bos = *tokenizer->spec().bos;
    EXPECT_EQ(stream(*tokenizer, {the, the}, 1), "the the");
    EXPECT_EQ(Detokenizer(*tokenizer, true, {bos}).append(the), "the");
    EXPECT_EQ(Detokenizer(*tokenizer, true, {bos, the}).append(the), " the");
    EXPECT_EQ(Detokenizer(*tokenizer, false, {bos}).append(the), " the");
    EXPECT_EQ(visible_tail(*tokenizer, Ids{bos, the, bos}, true), Ids{the});
    EXPECT_EQ(visible_tail(*tokenizer, Ids{bos, the, bos}, false), Ids{bos});
    EXPECT_TRUE(visible_tail(*tokenizer, Ids{bos, bos}, true).empty());
}

}  // namespace
}  // namespace pagoda::text
