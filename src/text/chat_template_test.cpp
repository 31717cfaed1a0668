#include "text/chat_template.h"

#include <cstdlib>
#include <ctime>
#include <string>

#include <gtest/gtest.h>

#include "base/clock.h"

namespace pagoda::text {
namespace {

using base::Json;

std::unique_ptr<ChatTemplate> compiled(std::string_view source) {
    auto made = ChatTemplate::compile(source);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return made.ok() ? std::move(made).value() : nullptr;
}

Json json(std::string_view text) {
    auto parsed = Json::parse(text);
    EXPECT_TRUE(parsed.ok()) << parsed.error().message;
    return parsed.ok() ? std::move(parsed).value() : Json();
}

std::string shown(const base::Result<std::string>& result) {
    return result.ok() ? result.value() : "ERROR: " + result.error().message;
}

ChatInput chat(std::string_view messages) {
    ChatInput input;
    input.messages = json(messages);
    return input;
}

constexpr std::string_view kPlain =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";
constexpr std::string_view kMapping =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls %}"
    "{{ c.function.name }}:{{ c.function.arguments | tojson }}{% endfor %}</>{% endfor %}";
constexpr std::string_view kText =
    "{% for m in messages %}{% for c in m.tool_calls %}"
    "{{ c.function.name + ':' + c.function.arguments }}{% endfor %}{% endfor %}";
constexpr std::string_view kCallHead =
    R"([{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": )";
constexpr std::string_view kCallTail = "}}]}]";

std::string call_with(std::string_view arguments) {
    return std::string(kCallHead) + std::string(arguments) + std::string(kCallTail);
}

TEST(ChatTemplate, ErrorsOfCompilingNameLineAndColumn) {
    const auto made = ChatTemplate::compile("a\nb {{ x | nope }}");
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().message, "chat template, line 2, column 10: unknown filter 'nope'");
    EXPECT_EQ(made.error().code, base::ErrorCode::kInvalidArgument);
}

TEST(ChatTemplate, UnsupportedFeaturesAreNamedWhenCompiling) {
    for (const std::string_view source :
         {"{% include 'x' %}", "{% import 'x' as y %}", "{% from 'x' import y %}",
          "{% extends 'x' %}", "{% block b %}{% endblock %}", "{{ [1]|random }}",
          "{{ 'x'|urlize }}", "{% autoescape true %}{% endautoescape %}"}) {
        const auto made = ChatTemplate::compile(source);
        ASSERT_FALSE(made.ok()) << source;
        EXPECT_EQ(made.error().code, base::ErrorCode::kUnsupported) << source;
        EXPECT_NE(made.error().message.find("line 1"), std::string::npos) << made.error().message;
    }
}

TEST(ChatTemplate, RaisedMessagesComeWordForWord) {
    const auto made = compiled("{{ raise_exception('Roles must alternate!') }}");
    const auto text = made->render(chat("[]"));
    ASSERT_FALSE(text.ok());
    EXPECT_EQ(text.error().message, "Roles must alternate!");
    EXPECT_EQ(text.error().code, base::ErrorCode::kInvalidArgument);
}

TEST(ChatTemplate, OtherFailuresNameTheLine) {
    const auto text = compiled("x\n{{ messages[0].content.nope() }}")->render(chat("[]"));
    ASSERT_FALSE(text.ok());
    EXPECT_EQ(text.error().message, "chat template, line 2: list object has no element 0");
}

TEST(ChatTemplate, ArgumentsThatAreTextBecomeAMappingOnce) {
    const auto made = compiled(kMapping);
    const std::string expected = R"(<assistant>f:{"a": [1, {"b": null}]}</>)";
    EXPECT_EQ(shown(made->render(chat(call_with(R"("{\"a\": [1, {\"b\": null}]}")")))), expected);
    EXPECT_EQ(shown(made->render(chat(call_with(R"({"a": [1, {"b": null}]})")))), expected);
}

TEST(ChatTemplate, EmptyArgumentsAreAnEmptyMapping) {
    const auto made = compiled(kMapping);
    for (const std::string_view arguments : {R"("")", R"("{}")", R"(" ")", R"("null")", "{}"}) {
        EXPECT_EQ(shown(made->render(chat(call_with(arguments)))), "<assistant>f:{}</>")
            << arguments;
    }
}

TEST(ChatTemplate, ArgumentsThatAreNoObjectAreRefusedByPlace) {
    const auto made = compiled(kMapping);
    for (const std::string_view arguments : {R"("not json")", R"("[1]")", R"("{\"a\": ")"}) {
        const auto text = made->render(chat(call_with(arguments)));
        ASSERT_FALSE(text.ok()) << arguments;
        EXPECT_EQ(text.error().code, base::ErrorCode::kInvalidArgument);
        EXPECT_EQ(text.error().param, "messages[0].tool_calls[0].function.arguments");
    }
}

TEST(ChatTemplate, ArgumentsThatAreAMappingBecomeTextWhereTextIsWanted) {
    const auto made = compiled(kText);
    EXPECT_EQ(shown(made->render(chat(call_with(R"({"a": 1})")))), R"(f:{"a": 1})");
    EXPECT_EQ(shown(made->render(chat(call_with(R"("{\"a\":1}")")))), R"(f:{"a":1})");
}

TEST(ChatTemplate, AbsentContentPrintsNothing) {
    const auto made = compiled(kPlain);
    EXPECT_EQ(shown(made->render(chat(R"([{"role": "a", "content": null}, {"role": "b"}])"))),
              "<a></><b></><assistant>");
}

TEST(ChatTemplate, NullContentReachesTemplatesThatTellItApart) {
    const auto made = compiled(
        "{% for m in messages %}{% if m.content is none %}(none){% else %}{{ m.content }}"
        "{% endif %}{% endfor %}");
    EXPECT_EQ(shown(made->render(chat(R"([{"role": "a", "content": null}])"))), "(none)");
}

TEST(ChatTemplate, TextPartsAreJoinedByNewlines) {
    const std::string messages =
        R"([{"role": "a", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]}])";
    EXPECT_EQ(shown(compiled(kPlain)->render(chat(messages))), "<a>x\ny</><assistant>");
}

TEST(ChatTemplate, PartsWithoutTextAreRefusedWhereOnlyTextIsTaken) {
    const auto text = compiled(kPlain)->render(
        chat(R"([{"role": "a", "content": [{"type": "image_url", "image_url": {}}]}])"));
    ASSERT_FALSE(text.ok());
    EXPECT_EQ(text.error().param, "messages[0].content");
    EXPECT_NE(text.error().message.find("image_url"), std::string::npos);
}

TEST(ChatTemplate, AbsentToolsAndDocumentsAreNone) {
    EXPECT_EQ(
        shown(compiled("{{ tools is none }} {{ documents is none }} {{ bos_token is defined }}")
                  ->render(chat("[]"))),
        "True True False");
}

TEST(ChatTemplate, ContinuationEndsWithTheLastText) {
    ChatInput input = chat(R"([{"role": "u", "content": "e"}, {"role": "a", "content": "One, "}])");
    input.add_generation_prompt = false;
    input.continue_final_message = true;
    EXPECT_EQ(shown(compiled(kPlain)->render(input)), "<u>e</><a>One, ");
    const auto trims =
        compiled("{% for m in messages %}<{{ m.role }}>{{ m.content|trim }}</>{% endfor %}");
    EXPECT_EQ(shown(trims->render(input)), "<u>e</><a>One,");
    input.messages = json(R"([{"role": "u", "content": "e"}, {"role": "a", "content": ""}])");
    EXPECT_EQ(shown(compiled(kPlain)->render(input)), "<u>e</><a>");
}

TEST(ChatTemplate, ContinuationAndGenerationPromptExcludeEachOther) {
    ChatInput input = chat(R"([{"role": "a", "content": "One"}])");
    input.continue_final_message = true;
    const auto text = compiled(kPlain)->render(input);
    ASSERT_FALSE(text.ok());
    EXPECT_EQ(text.error().param, "continue_final_message");
}

TEST(ChatTemplate, ContinuationNeedsAMessageThatIsPrinted) {
    ChatInput input = chat(R"([{"role": "a", "content": "One"}])");
    input.add_generation_prompt = false;
    input.continue_final_message = true;
    EXPECT_FALSE(compiled("nothing of it")->render(input).ok());
    input.messages = Json::array();
    EXPECT_FALSE(compiled(kPlain)->render(input).ok());
}

TEST(ChatTemplate, KwargsAreVariablesButNeverTheTemplateOrTheMessages) {
    ChatInput input = chat("[]");
    input.kwargs = json(R"({"enable_thinking": false})");
    EXPECT_EQ(shown(compiled("{{ enable_thinking }}")->render(input)), "False");
    for (const std::string_view name : {"messages", "tools", "chat_template"}) {
        input.kwargs = Json::object().set(name, "x");
        EXPECT_FALSE(compiled("{{ 1 }}")->render(input).ok()) << name;
    }
}

TEST(ChatTemplate, TheDateIsNowUnlessGiven) {
    ChatInput input = chat("[]");
    const auto made = compiled("{{ strftime_now('%Y-%m-%dT%H:%M:%S') }}");
    const std::string before = local_time(base::system_clock().unix_seconds());
    const std::string now = shown(made->render(input));
    EXPECT_LE(before, now);
    EXPECT_LE(now, local_time(base::system_clock().unix_seconds()));
    input.date_now = "2024-07-26T13:14:15";
    EXPECT_EQ(shown(compiled("{{ strftime_now('%d %b %Y %H:%M:%S') }}")->render(input)),
              "26 Jul 2024 13:14:15");
    input.date_now = "tomorrow";
    EXPECT_FALSE(made->render(input).ok());
}

TEST(ChatTemplate, AMomentIsWrittenInLocalTime) {
    const char* const zone = std::getenv("TZ");
    const std::string before = zone == nullptr ? "" : zone;
    setenv("TZ", "XYZ-05:30", 1);
    tzset();
    EXPECT_EQ(local_time(1'700'000'000), "2023-11-15T03:43:20");
    zone == nullptr ? unsetenv("TZ") : setenv("TZ", before.c_str(), 1);
    tzset();
}

TEST(ChatTemplate, ToolsChooseTheTemplateForToolUse) {
    const auto made =
        ChatTemplate::compile("main", {{"tool_use", "tools: {{ tools|length }}"}, {"rag", "rag"}})
            .value();
    ChatInput input = chat("[]");
    EXPECT_EQ(shown(made->render(input)), "main");
    input.tools = json("[{}, {}]");
    EXPECT_EQ(shown(made->render(input)), "tools: 2");
    input.template_name = "default";
    EXPECT_EQ(shown(made->render(input)), "main");
    input.template_name = "rag";
    EXPECT_EQ(shown(made->render(input)), "rag");
    EXPECT_EQ(shown(compiled("main")->render(chat("[]"))), "main");
}

TEST(ChatTemplate, AnUnknownNameIsRefusedWithThoseThatExist) {
    const auto made = ChatTemplate::compile("", {{"rag", "rag"}, {"tool_use", "tools"}}).value();
    EXPECT_TRUE(made->has("rag"));
    EXPECT_FALSE(made->has("default"));
    const auto refused = made->render(chat("[]"));  // by no name, and there is no main one
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().message,
              "this model has no chat template \"default\", but \"rag\", \"tool_use\"");
    EXPECT_FALSE(made->render_raw(Json::object()).ok());
}

TEST(ChatTemplate, ANamedOneThatDoesNotCompileFailsWhenItIsChosen) {
    const auto made = ChatTemplate::compile("main", {{"rag", "{% nonsense %}"}});
    ASSERT_TRUE(made.ok());
    ChatInput input = chat("[]");
    EXPECT_EQ(shown((*made)->render(input)), "main");
    input.template_name = "rag";
    const auto refused = (*made)->render(input);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find("\"rag\""), std::string::npos);
}

TEST(ChatTemplate, MessagesMustBeAnArrayOfObjects) {
    EXPECT_FALSE(compiled(kPlain)->render(chat("{}")).ok());
    EXPECT_FALSE(compiled(kPlain)->render(chat("[1]")).ok());
}

TEST(ChatTemplate, DeepInputIsRefused) {
    Json deep = Json::array();
    for (int level = 0; level < 5000; ++level) {
        Json outer = Json::array();
        outer.push_back(std::move(deep));
        deep = std::move(outer);
    }
    EXPECT_FALSE(compiled("{{ x }}")->render_raw(Json::object().set("x", std::move(deep))).ok());
}

}  // namespace
}  // namespace pagoda::text
