#include "decode/sampling_params.h"

#include <functional>
#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace pagoda::decode {
namespace {

SamplingParams valid() {
    SamplingParams params;
    params.max_tokens = 16;
    return params;
}

struct BadCase {
    const char* field;
    std::function<void(SamplingParams&)> spoil;
    const char* value;
    const char* limit;
};

TEST(NumberRange, SaysWhatItHolds) {
    EXPECT_EQ(number_range("temperature").text(), "at least 0 and at most 100");
    EXPECT_TRUE(number_range("temperature").contains(0));
    EXPECT_EQ(number_range("top_p").text(), "greater than 0 and at most 1");
    EXPECT_FALSE(number_range("top_p").contains(0));
    EXPECT_TRUE(number_range("top_p").contains(1e-9));
}

TEST(SamplingParams, EveryRefusalNamesFieldValueAndLimit) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const BadCase cases[] = {
        {"temperature", [](auto& p) { p.temperature = -0.5; }, "-0.5", "0"},
        {"temperature", [](auto& p) { p.temperature = 100.5; }, "100.5", "100"},
        {"temperature", [=](auto& p) { p.temperature = nan; }, "nan", "100"},
        {"top_p", [](auto& p) { p.top_p = 0; }, "0", "greater than 0"},
        {"top_p", [](auto& p) { p.top_p = 1.5; }, "1.5", "at most 1"},
        {"top_k", [](auto& p) { p.top_k = -2; }, "-2", "-1"},
        {"min_p", [](auto& p) { p.min_p = 1.01; }, "1.01", "at most 1"},
        {"typical_p", [](auto& p) { p.typical_p = 0; }, "0", "greater than 0"},
        {"repetition_penalty", [](auto& p) { p.repetition_penalty = 0; }, "0", "at least 0.0001"},
        {"repetition_penalty", [](auto& p) { p.repetition_penalty = 1e-300; }, "1e-300",
         "at least 0.0001"},
        {"repetition_penalty",
         [](auto& p) { p.repetition_penalty = std::numeric_limits<double>::infinity(); }, "inf",
         "10000"},
        {"presence_penalty", [](auto& p) { p.presence_penalty = 2.1; }, "2.1", "at most 2"},
        {"frequency_penalty", [](auto& p) { p.frequency_penalty = -2.1; }, "-2.1", "-2"},
        {"max_tokens", [](auto& p) { p.max_tokens = 0; }, "0", "at least 1"},
        {"min_tokens", [](auto& p) { p.min_tokens = 17; }, "17", "16"},
        {"min_tokens", [](auto& p) { p.min_tokens = -1; }, "-1", "at least 0"},
        {"logprobs", [](auto& p) { p.logprobs = 21; }, "21", "20"},
        {"prompt_logprobs", [](auto& p) { p.prompt_logprobs = -1; }, "-1", "0"},
        {"logit_bias",
         [](auto& p) {
             p.logit_bias = {{50, 1.0}};
         },
         "50", "49"},
        {"logit_bias",
         [](auto& p) {
             p.logit_bias = {{5, 101.0}};
         },
         "101", "100"},
        {"logit_bias",
         [](auto& p) {
             p.logit_bias = {{5, 1.0}, {5, 2.0}};
         },
         "5", "twice"},
        {"stop_token_ids", [](auto& p) { p.stop_token_ids = {-1}; }, "-1", "49"},
    };
    for (const BadCase& bad : cases) {
        SamplingParams params = valid();
        bad.spoil(params);
        const base::Status status = validate(params, 50);
        ASSERT_FALSE(status.ok()) << bad.field;
        const base::Error& error = status.error();
        EXPECT_EQ(error.code, base::ErrorCode::kInvalidArgument);
        EXPECT_EQ(error.param, bad.field);
        for (const char* part : {bad.field, bad.value, bad.limit}) {
            EXPECT_NE(error.message.find(part), std::string::npos)
                << error.message << " / " << part;
        }
    }
}

TEST(SamplingParams, TheEdgesOfEveryRangeAreAccepted) {
    SamplingParams params = valid();
    EXPECT_TRUE(validate(params, 50).ok());
    params.temperature = 100;
    params.top_p = 1e-9;
    params.top_k = -1;
    params.min_p = 1;
    params.presence_penalty = -2;
    params.frequency_penalty = 2;
    params.min_tokens = params.max_tokens;
    params.logprobs = 20;
    params.logit_bias = {{0, -100.0}, {49, 100.0}};
    params.stop_token_ids = {0, 49};
    EXPECT_TRUE(validate(params, 50).ok());
}

TEST(SamplingParams, MinTokensMustLeaveSomeTokenToChoose) {
    SamplingParams params{.max_tokens = 5};
    params.stop_token_ids = {0, 1, 1};
    const std::vector<base::TokenId> ends{2};
    EXPECT_TRUE(validate(params, 3, ends).ok()) << "nothing is held back without min_tokens";
    params.min_tokens = 1;
    EXPECT_EQ(validate(params, 3, ends).error().param, "stop_token_ids");
    EXPECT_TRUE(validate(params, 4, ends).ok());
    EXPECT_TRUE(validate(params, 3).ok()) << "without the model's end tokens";
}

}  // namespace
}  // namespace pagoda::decode
