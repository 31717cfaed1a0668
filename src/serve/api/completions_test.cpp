// Text completions through their route: prompts, echo and log-probabilities.

#include <gtest/gtest.h>

#include "serve/api/api_for_test.h"
#include "serve/api/routes.h"

namespace pagoda::api {
namespace {

using base::Json;
using test::Answer;
using test::Api;

Json choices_of(const Answer& answer) {
    EXPECT_EQ(answer.status(), 200);
    return *answer.json().find("choices");
}

// The choices that a stream's chunks join to, in the shape of a whole answer.
Json joined_choices(const Answer& answer) {
    EXPECT_TRUE(answer.events().is_done);
    Json choices = Json::array();
    for (const Json& document : answer.events().documents) {
        for (const Json& chunk : document.find("choices")->as_array()) {
            const auto index = static_cast<std::size_t>(chunk.find("index")->as_int());
            while (choices.as_array().size() <= index) choices.push_back(Json::object());
            Json& choice = choices.as_array()[index];
            const bool is_first = choice.find("text") == nullptr;
            for (const auto& [name, value] : chunk.as_object()) {
                const bool replaces = is_first || name == "finish_reason" ||
                                      name == "stop_reason" ||
                                      (name == "logprobs" && choice.find(name)->is_null());
                if (replaces) {
                    choice.set(name, value);
                } else if (name == "text") {
                    choice.set(name, choice.find(name)->as_string() + value.as_string());
                } else if (name == "logprobs" && !value.is_null()) {
                    for (const auto& [list, items] : value.as_object())
                        for (const Json& item : items.as_array())
                            choice.find(name)->find(list)->push_back(item);
                }
            }
        }
    }
    return choices;
}

// A route's refusal.
std::string refusal(Api& api, std::string_view body) {
    const auto answer = api.post(completions, body);
    EXPECT_EQ(answer->status(), 400) << body;
    return answer->json().find("error")->find("message")->as_string();
}

TEST(Completions, APromptIsTextOrIdsOrAListOfEither) {
    Api api("ab");
    for (const char* prompt :
         {R"("hi")", "[104, 105]", R"(["hi"])", "[[104, 105]]", R"(["hi", [104, 105]])"}) {
        const auto answer =
            api.post(completions, std::string(R"({"echo": true, "prompt": )") + prompt + "}");
        const Json choices = choices_of(*answer);
        for (const Json& choice : choices.as_array())
            EXPECT_EQ(choice.find("text")->as_string(), "hiab") << prompt;
    }
    for (const char* prompt : {"null", "7", "{}", "[]", R"("")", "[[]]", "[1.5]", "[-1]", "[999]",
                               R"([104, "hi"])", R"([["hi"]])"}) {
        const std::string body =
            std::string(R"({"add_special_tokens": false, "prompt": )") + prompt + "}";
        EXPECT_NE(refusal(api, body).find("prompt"), std::string::npos) << prompt;
    }
}

TEST(Completions, NoTokensAreWantedOnlyForWhatThePromptSays) {
    Api api("ab");
    EXPECT_NE(refusal(api, R"({"prompt": "hi", "max_tokens": 0})").find("max_tokens is 0"),
              std::string::npos);
    for (const char* wish : {R"("echo": true)", R"("prompt_logprobs": 0)"}) {
        for (const char* stream : {"false", "true"}) {
            const auto answer = api.post(
                completions, std::string(R"({"prompt": "hi", "max_tokens": 0, "stream": )") +
                                 stream + ", " + wish + "}");
            const Json choices =
                answer->is_stream() ? joined_choices(*answer) : choices_of(*answer);
            const bool is_echo = wish[1] == 'e';
            EXPECT_EQ(choices.as_array()[0].find("text")->as_string(), is_echo ? "hi" : "");
            EXPECT_EQ(choices.as_array()[0].find("finish_reason")->as_string(), "length");
            if (answer->is_stream()) continue;
            EXPECT_EQ(*answer->json().find("usage")->find("completion_tokens"), Json(0));
        }
    }
}

TEST(Completions, AStreamJoinsToTheWholeAnswer) {
    const char* const wishes[] = {
        R"("n": 2)",
        R"("echo": true, "logprobs": 1)",
        R"("echo": true, "logprobs": 2, "prompt_logprobs": 1, "n": 2)",
        R"("prompt_logprobs": 0, "n": 3, "logprobs": 0)",
        R"("logprobs": 1, "stop": "llo", "skip_special_tokens": false)",
        R"("logprobs": 1, "stop": "none of it", "echo": true)",
        R"("max_tokens": 0, "echo": true, "logprobs": 1, "prompt_logprobs": 2)",
    };
    Api api("\xF0\x9F\x98\x80 hello");
    // Longer than a step of a scored prompt, so that the choices which are not scored come first.
    const std::string body =
        R"({"prompt": [")" + std::string(200, 'p') + "\", \"q\xC3\xA9\"], \"seed\": 1, ";
    for (const char* wish : wishes) {
        const Json whole = choices_of(*api.post(completions, body + wish + "}"));
        const auto stream = api.post(completions, body + wish + R"(, "stream": true})");
        EXPECT_EQ(joined_choices(*stream).dump(), whole.dump()) << wish;
    }
}

TEST(Completions, PromptLogprobsStandInEveryChoiceOfEveryPrompt) {
    Api api("ab");
    const Json choices = choices_of(
        *api.post(completions, R"({"prompt": ["hi", "abcd"], "n": 2, "prompt_logprobs": 1})"));
    ASSERT_EQ(choices.as_array().size(), 4U);
    const std::size_t lengths[] = {3, 3, 5, 5};  // <s> each
    for (std::size_t index = 0; index < 4; ++index) {
        const Json::Array& scored = choices.as_array()[index].find("prompt_logprobs")->as_array();
        ASSERT_EQ(scored.size(), lengths[index]);
        EXPECT_TRUE(scored[0].is_null());
        EXPECT_NE(scored[1].find(index < 2 ? "104" : "97"), nullptr) << scored[1].dump();
    }
}

TEST(Completions, EchoedLogprobsDoNotPutPromptLogprobsIntoTheAnswer) {
    Api api("ab");
    const Json choice = choices_of(*api.post(completions, R"({"prompt": "hi", "echo": true,
                                                              "logprobs": 1})"))
                            .as_array()[0];
    EXPECT_EQ(choice.find("prompt_logprobs"), nullptr);
    const Json& logprobs = *choice.find("logprobs");
    EXPECT_EQ(logprobs.find("tokens")->dump(), R"(["<s>","h","i","a","b","</s>"])");
    EXPECT_EQ(logprobs.find("text_offset")->dump(), "[0,0,1,2,3,4]");
    EXPECT_EQ(logprobs.find("token_logprobs")->dump(), "[null,-0.5,-0.5,-0.5,-0.5,-0.5]");
    EXPECT_EQ(logprobs.find("top_logprobs")->as_array()[1].dump(), R"({"h":-0.5})");
}

TEST(Completions, OffsetsEndWhereAStopStringCutsTheText) {
    Api api("hello");
    for (const char* stream : {"false", "true"}) {
        const auto answer =
            api.post(completions,
                     std::string(R"({"prompt": "x", "logprobs": 0, "stop": "llo", "stream": )") +
                         stream + "}");
        const Json choice =
            (answer->is_stream() ? joined_choices(*answer) : choices_of(*answer)).as_array()[0];
        EXPECT_EQ(choice.find("text")->as_string(), "he");
        EXPECT_EQ(choice.find("stop_reason")->as_string(), "llo");
        EXPECT_EQ(choice.find("logprobs")->find("text_offset")->dump(), "[0,1,2,2,2]");
    }
}

TEST(Completions, UnknownFieldsAreNamedAlsoInside) {
    Api api("ab");
    const auto answer = api.post(completions,
                                 R"({"prompt": "x", "odd": 1, "stream": true,
                                     "stream_options": {"include_usage": true, "foo": 1},
                                     "response_format": {"type": "text", "bar": 2}})");
    EXPECT_EQ(answer->header("x-pagoda-ignored-fields"),
              "odd, response_format.bar, stream_options.foo");
}

TEST(Completions, ATextThatItsLengthAloneKeepsFromFittingIsRefusedUnread) {
    Api api("ab");
    ASSERT_EQ(api.tokenizer->least_tokens(std::string(10'000, 'x')), 2500) << "</s> has four bytes";
    const auto answer =
        api.post(completions, R"({"prompt": ")" + std::string(10'000, 'x') + R"("})");
    EXPECT_EQ(answer->status(), 400);
    const Json error = *answer->json().find("error");
    EXPECT_EQ(error.find("code")->as_string(), "context_length_exceeded");
    EXPECT_NE(error.find("message")->as_string().find("10000 bytes and so at least"),
              std::string::npos);
}

}  // namespace
}  // namespace pagoda::api
