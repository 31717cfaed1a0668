#include "text/jinja/unicode.h"

#include <gtest/gtest.h>

namespace pagoda::text::jinja {
namespace {

TEST(Unicode, OffsetsCountCodePoints) {
    const std::string_view text = "a\u00e9\u4f60\U0001f600z";
    EXPECT_EQ(count_code_points(text), 5U);
    EXPECT_EQ(offset_of(text, 2), 3U);
    EXPECT_EQ(offset_of(text, 4), 10U);
    EXPECT_EQ(offset_of(text, 9), text.size());
    EXPECT_EQ(previous_offset(text, 10), 6U);
    EXPECT_EQ(reversed(text), "z\U0001f600\u4f60\u00e9a");
}

TEST(Unicode, CaseFollowsPython) {
    EXPECT_EQ(to_upper("stra\u00dfe \ufb01"), "STRASSE FI");
    EXPECT_EQ(to_lower("\u039f\u03a3 \u03a3 \u03a3\u0391"), "\u03bf\u03c2 \u03c3 \u03c3\u03b1");
    EXPECT_EQ(to_lower("\u0130"), "i\u0307");
    EXPECT_EQ(to_title("they're \u01c6x"), "They'Re \u01c5x");
    EXPECT_EQ(fold_case("Stra\u00dfe"), "strasse");
}

TEST(Unicode, SpaceIsPythonsSpace) {
    EXPECT_EQ(strip_space("\u00a0\u2003\x1c x \u3000"), "x");
    EXPECT_EQ(strip_space("\u200bx"), "\u200bx");
    EXPECT_EQ(strip_characters("\u00e9x\u00e9", "\u00e9"), "x");
}

TEST(Unicode, LinesEndAtEveryLineBreak) {
    EXPECT_EQ(split_lines("a\r\nb\rc\x0b"
                          "d\u2028e",
                          false)
                  .size(),
              5U);
    EXPECT_EQ(split_lines("a\n\n", true), (std::vector<std::string_view>{"a\n", "\n"}));
    EXPECT_TRUE(split_lines("", false).empty());
}

}  // namespace
}  // namespace pagoda::text::jinja
