#include "serve/api/chat_prompt.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "serve/api/api_for_test.h"
#include "serve/api/routes.h"

namespace pagoda::api {
namespace {

using base::Json;
using test::Api;

std::string with_fields(std::string_view fields) {
    return R"({"messages": [{"role": "user", "content": "hi"}])" + std::string(fields) + "}";
}

// The prompt, or the message of a refusal.
std::string rendered(Api& api, const std::string& body) {
    const Json answer = api.post(apply_template, body)->json();
    const Json* prompt = answer.find("prompt");
    return prompt != nullptr ? prompt->as_string()
                             : answer.find("error")->find("message")->as_string();
}

TEST(ChatPrompt, ARequestsOwnTemplateIsRefusedByNameUnlessTrusted) {
    Api api("");
    for (const auto& [fields, param] : std::vector<std::pair<std::string, std::string>>{
             {R"(, "chat_template": "{{ 1 }}")", "chat_template"},
             {R"(, "chat_template_kwargs": {"x": 1, "chat_template": "{{ 1 }}"})",
              "chat_template_kwargs.chat_template"}}) {
        const auto refused = api.post(apply_template, with_fields(fields));
        EXPECT_EQ(refused->status(), 400);
        const Json error = *refused->json().find("error");
        EXPECT_EQ(error.find("code")->as_string(), "unsupported_value");
        EXPECT_EQ(error.find("param")->as_string(), param);
        EXPECT_NE(error.find("message")->as_string().find("--trust-request-chat-template"),
                  std::string::npos);
    }
}

TEST(ChatPrompt, AnUnknownModelIsRefusedBeforeATemplateRuns) {
    Api api("");
    const auto raising = text::ChatTemplate::compile("{{ raise_exception('it ran') }}").value();
    api.context.chat_template = raising.get();
    EXPECT_NE(rendered(api, with_fields("")).find("it ran"), std::string::npos);
    for (const auto handler : {apply_template, tokenize}) {
        const auto refused = api.post(handler, with_fields(R"(, "model": "theirs")"));
        EXPECT_EQ(refused->status(), 404);
        EXPECT_EQ(refused->json().find("error")->find("code")->as_string(), "model_not_found");
    }
}

TEST(ChatPrompt, ATrustedTemplateOfTheRequestIsUsedFromEitherPlace) {
    Api api("");
    api.context.trust_request_chat_template = true;
    EXPECT_EQ(rendered(api, with_fields(R"(, "chat_template": "<{{ messages[0].content }}>")")),
              "<hi>");
    EXPECT_EQ(rendered(api, with_fields(R"(, "chat_template_kwargs":
                                            {"x": 5, "chat_template": "{{ x }}"})")),
              "5");
    for (const char* bad :
         {R"(, "chat_template": 7)", R"(, "chat_template": "{{")", R"(, "chat_template": "")",
          R"(, "chat_template_kwargs": {"chat_template": 7})",
          R"(, "chat_template": "a", "chat_template_kwargs": {"chat_template": "b"})"}) {
        const auto refused = api.post(apply_template, with_fields(bad));
        EXPECT_EQ(refused->status(), 400) << bad;
        EXPECT_TRUE(
            refused->json().find("error")->find("param")->as_string().ends_with("chat_template"))
            << bad;
    }
}

TEST(ChatPrompt, NamedTemplatesAreChosenByToolsAndWhereTrustedByName) {
    Api api("");
    const auto named = text::ChatTemplate::compile(
                           "main", {{"tool_use", "{{ tools|length }} tools"}, {"rag", "rag"}})
                           .value();
    api.context.chat_template = named.get();
    EXPECT_EQ(rendered(api, with_fields("")), "main");
    EXPECT_EQ(rendered(api, with_fields(R"(, "tools": [{}, {}])")), "2 tools");
    EXPECT_NE(rendered(api, with_fields(R"(, "chat_template": "rag")")).find("refused"),
              std::string::npos);
    api.context.trust_request_chat_template = true;
    EXPECT_EQ(rendered(api, with_fields(R"(, "chat_template": "rag")")), "rag");
}

TEST(ChatPrompt, TheClockOfTheServerTellsTemplatesTheTime) {
    Api api("");
    api.context.trust_request_chat_template = true;
    const std::string format = "%Y-%m-%dT%H:%M:%S";
    EXPECT_EQ(rendered(api, with_fields(R"(, "chat_template": "{{ strftime_now(')" + format +
                                        R"(') }}")")),
              text::local_time(api.clock.unix_seconds()));
}

TEST(ChatPrompt, UnknownMembersOfPartsAreReportedOnce) {
    Api api("");
    const auto answer = api.post(apply_template, R"({"messages": [
        {"role": "user", "name": "me", "content": [
            {"type": "text", "text": "a", "cache_control": {}},
            {"type": "text", "text": "b", "cache_control": {}}]}]})");
    EXPECT_EQ(answer->status(), 200);
    EXPECT_EQ(answer->header("x-pagoda-ignored-fields"), "messages[].content[].cache_control");
    EXPECT_EQ(answer->json().find("prompt")->as_string(), "user:a\nb;assistant:");
}

TEST(ChatPrompt, WrongMessagesAreNamedByTheirPlace) {
    struct Case {
        const char* messages;
        const char* param;
    };
    const Case cases[] = {
        {"[]", "messages"},
        {"[5]", "messages[0]"},
        {R"([{"content": "x"}])", "messages[0].role"},
        {R"([{"role": 5}])", "messages[0].role"},
        {R"([{"role": "user", "content": 5}])", "messages[0].content"},
        {R"([{"role": "user", "content": [5]}])", "messages[0].content"},
        {R"([{"role": "user", "content": [{"type": "text"}]}])", "messages[0].content"},
        {R"([{"role": "user", "content": [{"type": "image_url"}]}])", "messages[0].content"},
    };
    Api api("");
    for (const Case& each : cases) {
        const auto refused =
            api.post(chat_completions, std::string(R"({"messages": )") + each.messages + "}");
        EXPECT_EQ(refused->status(), 400) << each.messages;
        EXPECT_EQ(refused->json().find("error")->find("param")->as_string(), each.param);
    }
}

}  // namespace
}  // namespace pagoda::api
