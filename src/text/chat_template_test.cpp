#include "text/chat_template.h"

#include <string>

#include <gtest/gtest.h>

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

TEST(ChatTemplate, TheDateIsTodayAtMidnightUnlessGiven) {
    ChatInput input = chat("[]");
    const auto made = compiled("{{ strftime_now('%H:%M:%S') }} {{ strftime_now('%Y')|length }}");
    EXPECT_EQ(shown(made->render(input)), "00:00:00 4");
    input.date_now = "2024-07-26T13:14:15";
    EXPECT_EQ(shown(compiled("{{ strftime_now('%d %b %Y %H:%M:%S') }}")->render(input)),
              "26 Jul 2024 13:14:15");
    input.date_now = "tomorrow";
    EXPECT_FALSE(made->render(input).ok());
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
