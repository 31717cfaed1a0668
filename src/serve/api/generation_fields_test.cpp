#include "serve/api/generation_fields.h"

#include <gtest/gtest.h>

namespace pagoda::api {
namespace {

using base::Json;

struct Outcome {
    GenerationFields fields;
    std::optional<base::Error> error;
    std::vector<std::string> ignored;
};

Outcome read(std::string_view text, bool is_chat = true, const SamplingDefaults& defaults = {}) {
    Json body = Json::parse(text).value();
    FieldReader reader(body);
    ApiContext context;
    context.defaults = defaults;
    Outcome outcome;
    outcome.fields = read_generation_fields(reader, context, is_chat);
    if (!reader.ok()) outcome.error = reader.error();
    outcome.ignored = reader.unread();
    return outcome;
}

std::string param_of(std::string_view text, bool is_chat = true) {
    const Outcome outcome = read(text, is_chat);
    return outcome.error ? outcome.error->param : "";
}

TEST(GenerationFields, WhatIsNotSaidComesFromTheModel) {
    const SamplingDefaults defaults{.temperature = 0.6, .top_p = 0.9, .top_k = 20};
    const GenerationFields fields = read(R"({"top_k": 5})", true, defaults).fields;
    EXPECT_EQ(fields.sampling.temperature, 0.6);
    EXPECT_EQ(fields.sampling.top_p, 0.9);
    EXPECT_EQ(fields.sampling.top_k, 5);
    EXPECT_FALSE(fields.max_tokens);
    EXPECT_FALSE(fields.stream);
}

TEST(GenerationFields, SeedsDecideAndAbsentOnesDiffer) {
    EXPECT_EQ(read(R"({"seed": -1})").fields.sampling.seed, ~std::uint64_t{0});
    EXPECT_NE(read("{}").fields.sampling.seed, read("{}").fields.sampling.seed);
}

TEST(GenerationFields, StopsAreOneStringOrSeveral) {
    EXPECT_EQ(read(R"({"stop": "a"})").fields.stop, std::vector<std::string>{"a"});
    EXPECT_EQ(read(R"({"stop": ["a", "b"]})").fields.stop, (std::vector<std::string>{"a", "b"}));
    for (const char* stop : {"5", "{}", "[5]", "[null]"})
        EXPECT_EQ(param_of(std::string(R"({"stop": )") + stop + "}"), "stop");
    EXPECT_EQ(param_of(R"({"stop_token_ids": [1.5]})"), "stop_token_ids");
}

TEST(GenerationFields, LengthsHaveTwoNamesInChats) {
    EXPECT_EQ(read(R"({"max_completion_tokens": 7})").fields.max_tokens, 7);
    EXPECT_EQ(read(R"({"max_tokens": 7, "max_completion_tokens": 7})").fields.max_tokens, 7);
    EXPECT_EQ(param_of(R"({"max_tokens": 7, "max_completion_tokens": 8})"),
              "max_completion_tokens");
    EXPECT_EQ(param_of(R"({"max_tokens": 0})"), "max_tokens");
    EXPECT_EQ(param_of(R"({"max_tokens": 0})", /*is_chat=*/false), "");
    EXPECT_EQ(read(R"({"max_completion_tokens": 7})", /*is_chat=*/false).ignored,
              std::vector<std::string>{"max_completion_tokens"});
}

TEST(GenerationFields, LogprobsAreABooleanInChatsAndANumberInCompletions) {
    EXPECT_EQ(read(R"({"logprobs": true, "top_logprobs": 4})").fields.sampling.logprobs, 4);
    EXPECT_EQ(read(R"({"logprobs": true})").fields.sampling.logprobs, 0);
    EXPECT_FALSE(read(R"({"logprobs": false})").fields.sampling.logprobs);
    EXPECT_EQ(param_of(R"({"top_logprobs": 4})"), "top_logprobs");
    EXPECT_EQ(param_of(R"({"logprobs": 4})"), "logprobs");
    EXPECT_EQ(read(R"({"logprobs": 4})", /*is_chat=*/false).fields.sampling.logprobs, 4);
    EXPECT_EQ(param_of(R"({"logprobs": 21})", /*is_chat=*/false), "logprobs");
    EXPECT_EQ(read(R"({"prompt_logprobs": 3})").fields.sampling.prompt_logprobs, 3);
}

TEST(GenerationFields, StreamOptionsNeedAStreamAndReportWhatTheyDoNotKnow) {
    const Outcome outcome = read(
        R"({"stream": true, "stream_options": {"include_usage": true, "include_obfuscation": false}})");
    EXPECT_TRUE(outcome.fields.include_usage);
    EXPECT_EQ(outcome.ignored, std::vector<std::string>{"stream_options.include_obfuscation"});
    EXPECT_EQ(param_of(R"({"stream_options": {"include_usage": true}})"), "stream_options");
    EXPECT_EQ(param_of(R"({"stream": true, "stream_options": {"include_usage": 1}})"),
              "stream_options.include_usage");
}

TEST(GenerationFields, WhatIsNotOfferedIsRefusedAndWhatAsksForNothingIsNot) {
    for (const char* field :
         {R"("tools": [{}])", R"("tool_choice": "required")", R"("guided_json": {})",
          R"("structured_outputs": {"regex": "a"})", R"("use_beam_search": true)",
          R"("best_of": 2)", R"("store": true)", R"("audio": {})", R"("modalities": ["audio"])",
          R"("response_format": {"type": "json_object"})", R"("functions": [{}])"}) {
        const Outcome outcome = read(std::string("{") + field + "}");
        ASSERT_TRUE(outcome.error) << field;
        EXPECT_EQ(outcome.error->code, base::ErrorCode::kUnsupported) << field;
        EXPECT_FALSE(outcome.error->param.empty()) << field;
    }
    for (const char* field : {R"("tools": [])", R"("tool_choice": "none")", R"("best_of": 1)",
                              R"("store": false)", R"("modalities": ["text"])", R"("user": "me")",
                              R"("response_format": {"type": "text"})", R"("length_penalty": 1)"}) {
        const Outcome outcome = read(std::string("{") + field + "}");
        EXPECT_FALSE(outcome.error) << field;
        EXPECT_TRUE(outcome.ignored.empty()) << field;
    }
    EXPECT_EQ(param_of(R"({"response_format": {}})"), "response_format");
}

}  // namespace
}  // namespace pagoda::api
