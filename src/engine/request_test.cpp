#include "engine/request.h"

#include <gtest/gtest.h>

namespace pagoda::engine {
namespace {

TEST(ResolveMaxTokens, WithoutALimitTheAnswerMayFillTheContext) {
    EXPECT_EQ(resolve_max_tokens(std::nullopt, 10, 16).value(), 6);
    EXPECT_EQ(resolve_max_tokens(6, 10, 16).value(), 6);
}

TEST(ResolveMaxTokens, WhatDoesNotFitNamesAllNumbers) {
    for (const auto& refused : {resolve_max_tokens(7, 10, 16), resolve_max_tokens(7, 16, 16),
                                resolve_max_tokens(std::nullopt, 16, 16)}) {
        ASSERT_FALSE(refused.ok());
        EXPECT_EQ(refused.error().param, kContextLength);
        EXPECT_NE(refused.error().message.find("16"), std::string::npos);
    }
    EXPECT_NE(resolve_max_tokens(7, 10, 16).error().message.find("max_tokens is 7"),
              std::string::npos);
}

TEST(FinishName, IsTheOneOfOpenAi) {
    EXPECT_EQ(finish_name(FinishReason::kStop), "stop");
    EXPECT_EQ(finish_name(FinishReason::kLength), "length");
    EXPECT_EQ(finish_name(FinishReason::kAborted), "abort");
    EXPECT_EQ(finish_name(FinishReason::kError), "error");
}

}  // namespace
}  // namespace pagoda::engine
