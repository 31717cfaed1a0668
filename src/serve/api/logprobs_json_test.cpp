#include "serve/api/logprobs_json.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "serve/api/api_for_test.h"
#include "text/vocabulary_for_test.h"

namespace pagoda::api {
namespace {

using base::Json;
using base::TokenId;
using decode::TokenLogprob;
using test::kBegin;
using test::kEnd;

std::vector<TokenLogprob> plain(const std::vector<TokenId>& tokens) {
    std::vector<TokenLogprob> list;
    list.reserve(tokens.size());
    for (const TokenId token : tokens) list.push_back({.token = token, .logprob = -1});
    return list;
}

std::string offsets(const Json& json) {
    return json.find("text_offset")->dump();
}

TEST(ChatLogprobs, EveryTokenHasItsBytesAndAlternatives) {
    const auto tokenizer = test::byte_tokenizer();
    const std::vector<TokenLogprob> list = {
        {.token = 'a', .logprob = -0.5, .top = {{'a', -0.5}, {0xF0, -2}}}};
    EXPECT_EQ(chat_logprobs(*tokenizer, list).dump(),
              R"({"content":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[)"
              R"({"token":"a","logprob":-0.5,"bytes":[97]},)"
              "{\"token\":\"\uFFFD\",\"logprob\":-2.0,\"bytes\":[240]}]}]}");
}

TEST(CompletionLogprobs, PiecesOfACharacterStandAtItsPlaceAndAreSpelledAsBytes) {
    const auto tokenizer = test::byte_tokenizer();
    CompletionLogprobs logprobs(*tokenizer, {});
    logprobs.add(plain({'a', 0xC3, 0xA9, 'b'}));
    const Json json = logprobs.take(3, true);
    EXPECT_EQ(json.find("tokens")->dump(), R"(["a","bytes:\\xc3","bytes:\\xa9","b"])");
    EXPECT_EQ(offsets(json), "[0,1,1,2]");
}

TEST(CompletionLogprobs, SpecialTokensCountWhereTheTextShowsThem) {
    const auto tokenizer = test::byte_tokenizer();
    for (const bool skip : {true, false}) {
        CompletionLogprobs logprobs(*tokenizer, {.skip_special = skip});
        logprobs.add(plain({kBegin, 'a', kEnd, 'b'}));
        EXPECT_EQ(offsets(logprobs.take(100, true)), skip ? "[0,0,1,1]" : "[0,3,4,8]");
    }
}

TEST(CompletionLogprobs, ALeadingSpaceCountsWhereTheTextHasIt) {
    const auto spec = text::test::pieces_spec(text::TokenizerKind::kSentencePieceBpe, {"\u2581the"},
                                              /*has_bytes=*/true);
    const TokenId the = text::test::id_of(spec, "\u2581the");
    const auto tokenizer = text::Tokenizer::create(spec).value();
    CompletionLogprobs begins(*tokenizer, {});
    begins.add(plain({the, the}));
    EXPECT_EQ(offsets(begins.take(7, true)), "[0,3]");  // "the the"
    CompletionLogprobs continues(*tokenizer, {.tail = {the}});
    continues.add_prompt(*spec.bos, plain({the}), 3);
    continues.add(plain({the, the}));
    EXPECT_EQ(offsets(continues.take(11, true)), "[0,0,3,7]");
}

TEST(CompletionLogprobs, ThePromptTakesNoMoreThanItsOwnText) {
    const auto tokenizer = test::byte_tokenizer();
    CompletionLogprobs logprobs(*tokenizer, {});
    logprobs.add_prompt('a', plain({'b', 'c'}), 1);  // a tokenizer that lost two of three
    logprobs.add(plain({'d'}));
    const Json json = logprobs.take(2, true);
    EXPECT_EQ(offsets(json), "[0,1,1,1]");
    EXPECT_TRUE(json.find("token_logprobs")->as_array()[0].is_null());
}

TEST(CompletionLogprobs, WhatMayBeCutOffWaitsForItsText) {
    const auto tokenizer = test::byte_tokenizer();
    CompletionLogprobs logprobs(*tokenizer, {});
    logprobs.add(plain({'a', 'b', 'c'}));
    EXPECT_EQ(offsets(logprobs.take(1, false)), "[0,1]");
    EXPECT_TRUE(logprobs.take(1, false).is_null());
    EXPECT_EQ(offsets(logprobs.take(1, true)), "[1]");  // a stop string cut the text there
    EXPECT_TRUE(logprobs.take(1, true).is_null());
}

TEST(CompletionLogprobs, AlternativesHoldTheTokenAndTheBestOfThoseSpelledAlike) {
    text::TokenizerSpec spec = text::test::byte_level_spec({});
    const TokenId twin = text::test::add_token(spec, "a", text::TokenType::kControl);
    const auto tokenizer = text::Tokenizer::create(spec).value();
    CompletionLogprobs logprobs(*tokenizer, {.num_top = 2});
    const std::vector<TokenLogprob> list = {
        {.token = 'c', .logprob = -3, .top = {{'a', -1}, {twin, -2}, {'b', -2.5}}}};
    logprobs.add(list);
    EXPECT_EQ(logprobs.take(1, true).find("top_logprobs")->dump(), R"([{"a":-1.0,"c":-3.0}])");
}

TEST(CompletionLogprobs, NumbersThatJsonLacksAreTheLeastThatClientsRead) {
    const auto tokenizer = test::byte_tokenizer();
    CompletionLogprobs logprobs(*tokenizer, {});
    const std::vector<TokenLogprob> list = {
        {.token = 'a', .logprob = -std::numeric_limits<float>::infinity()}};
    logprobs.add(list);
    EXPECT_EQ(logprobs.take(1, true).find("token_logprobs")->dump(), "[-9999.0]");
}

TEST(PromptLogprobs, HaveVllmsShapeAndTheNumberAskedFor) {
    const auto tokenizer = test::byte_tokenizer();
    const std::vector<TokenLogprob> list = {
        {.token = 'b', .logprob = -1, .rank = 2, .top = {{'a', -0.5}, {'b', -1}, {'c', -2}}}};
    const Json json = prompt_logprobs_json(*tokenizer, list, 2);
    EXPECT_EQ(json.dump(), R"([null,{"98":{"logprob":-1.0,"rank":2,"decoded_token":"b"},)"
                           R"("97":{"logprob":-0.5,"rank":1,"decoded_token":"a"}}])");
    EXPECT_EQ(prompt_logprobs_json(*tokenizer, {}, 2).dump(), "[null]");
}

}  // namespace
}  // namespace pagoda::api
