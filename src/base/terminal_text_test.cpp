#include "base/terminal_text.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace pagoda::base {
namespace {

TEST(TerminalText, EscapesWhatSteersATerminal) {
    EXPECT_EQ(terminal_line("\x1b[2J\r\n\x07\x7f\t"), "\\x1b[2J\\x0d\\n\\x07\\x7f\\x09");
    // CSI as one character.
    EXPECT_EQ(terminal_line("\xc2\x9b"), "\\u009b");
}

TEST(TerminalText, EscapesWhatReordersALine) {
    EXPECT_EQ(terminal_line("a\xe2\x80\xae"
                            "b\xe2\x81\xa6"
                            "c\xd8\x9c\xe2\x80\xa8"),
              "a\\u202eb\\u2066c\\u061c\\u2028");
}

TEST(TerminalText, EscapesEveryByteThatIsNoUtf8) {
    EXPECT_EQ(terminal_line("a\xff\xe2\x82z\xc3"), "a\\xff\\xe2\\x82z\\xc3");
    EXPECT_EQ(terminal_line("\xed\xa0\x80"), "\\xed\\xa0\\x80");
}

TEST(TerminalText, LeavesTextOfAnyScriptAsItIs) {
    const std::string text = "\xc3\xbc \xe4\xb8\x96 \xd7\xa9\xd7\x9c \xf0\x9f\xa7\xbf \\ \"";
    EXPECT_EQ(terminal_line(text), text);
    EXPECT_EQ(terminal_text(text), text);
    EXPECT_EQ(terminal_text("two\n\tlines\x1b[0m\r\n"), "two\n\tlines\\x1b[0m\\x0d\n");
    EXPECT_EQ(terminal_line(""), "");
}

TEST(TerminalText, JsonStaysTheSameJson) {
    const std::string hostile = "\x1b[2J\n\x7f\xc2\x9b\xe2\x80\xae\xc3\xbc";
    const Json document = Json::object().set("name", hostile);
    const std::string shown = terminal_json(document.dump());
    EXPECT_EQ(shown, R"({"name":"\u001b[2J\n\u007f\u009b\u202e)"
                     "\xc3\xbc\"}");
    EXPECT_EQ(Json::parse(shown).value().find("name")->as_string(), hostile);
}

}  // namespace
}  // namespace pagoda::base
