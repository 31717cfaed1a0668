#include "base/utf8.h"

#include <vector>

#include <gtest/gtest.h>

namespace pagoda::base {
namespace {

constexpr std::string_view kBad = "\xef\xbf\xbd";

std::string repeated_bad(int count) {
    std::string text;
    for (int mark = 0; mark < count; ++mark) text.append(kBad);
    return text;
}

TEST(Utf8, EveryCharacterSurvivesTheRoundTrip) {
    for (char32_t code = 0; code <= 0x10ffff; ++code) {
        if (code >= 0xd800 && code <= 0xdfff) continue;
        std::string text;
        append_utf8(text, code);
        const Utf8Char decoded = decode_utf8(text);
        ASSERT_TRUE(decoded.valid) << static_cast<unsigned>(code);
        ASSERT_EQ(decoded.code, code);
        ASSERT_EQ(decoded.bytes, text.size());
        ASSERT_TRUE(is_valid_utf8(text));
    }
}

TEST(Utf8, CodesThatAreNoCharactersAreWrittenAsReplacement) {
    for (const char32_t code : {0xd800U, 0xdfffU, 0x110000U, 0xffffffffU}) {
        std::string text;
        append_utf8(text, code);
        EXPECT_EQ(text, kBad);
    }
}

TEST(Utf8, TheEndOfTheTextConsumesNothing) {
    EXPECT_EQ(decode_utf8("").bytes, 0);
    EXPECT_FALSE(decode_utf8("").valid);
}

TEST(Utf8, EachMaximalInvalidSubpartBecomesOneMark) {
    struct Case {
        std::string_view text;
        int marks;
    };
    // The counts follow Unicode 15, tables 3-8 to 3-11.
    const std::vector<Case> cases = {
        {"\x80", 1},                              // a continuation alone
        {"\xff", 1},                              // never a byte of UTF-8
        {"\xc0\xaf", 2},                          // overlong
        {"\xe0\x80\xaf", 3},                      // overlong
        {"\xf0\x80\x80\x80", 4},                  // overlong
        {"\xed\xa0\x80", 3},                      // a surrogate
        {"\xf4\x90\x80\x80", 4},                  // above U+10FFFF
        {"\xf5\x80", 2},                          // no lead byte
        {"\xe2\x82", 1},                          // cut
        {"\xf0\x9f\x98", 1},                      // cut
        {"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf", 4},  // four cut starts
        {"\xed\xa0\x80\xed\xbf\xbf\xed\xaf", 8},  // surrogates, the last one cut
    };
    for (const Case& one : cases) {
        EXPECT_EQ(replace_invalid_utf8(one.text), repeated_bad(one.marks));
        EXPECT_FALSE(is_valid_utf8(one.text));
    }
}

TEST(Utf8, ReplacementKeepsWhatIsValid) {
    EXPECT_EQ(replace_invalid_utf8("a long ascii prefix \xff|\xc3\xa9\xe2\x82|end"),
              "a long ascii prefix \xef\xbf\xbd|\xc3\xa9\xef\xbf\xbd|end");
    EXPECT_EQ(replace_invalid_utf8(std::string_view("\0a", 2)), std::string_view("\0a", 2));
}

TEST(Utf8, TheValidPrefixEndsAtTheFirstBadByte) {
    EXPECT_EQ(valid_utf8_prefix("0123456789abc\xc3\xa9\xc3"), 15U);
    EXPECT_EQ(valid_utf8_prefix("01234567\x80"), 8U);
    EXPECT_EQ(valid_utf8_prefix(""), 0U);
}

TEST(Utf8, AnUnfinishedCharacterAtTheEndIsHeldBack) {
    EXPECT_EQ(complete_utf8_prefix("ab\xf0\x9f\x98"), 2U);
    EXPECT_EQ(complete_utf8_prefix("ab\xf0"), 2U);
    EXPECT_EQ(complete_utf8_prefix("\xc3"), 0U);
    EXPECT_EQ(complete_utf8_prefix("ab\xf0\x9f\x98\x80"), 6U);
    EXPECT_EQ(complete_utf8_prefix("ab"), 2U);
    EXPECT_EQ(complete_utf8_prefix(""), 0U);
}

TEST(Utf8, InvalidBytesAtTheEndAreNotHeldBack) {
    EXPECT_EQ(complete_utf8_prefix("ab\xff"), 3U);
    EXPECT_EQ(complete_utf8_prefix("ab\x80\x80\x80"), 5U);
    EXPECT_EQ(complete_utf8_prefix("ab\xed\xa0"), 4U);        // will never be a character
    EXPECT_EQ(complete_utf8_prefix("\xe2\x82\xac\x80"), 4U);  // one continuation too many
    EXPECT_EQ(complete_utf8_prefix("\xf4\x90"), 2U);
}

// However a text is cut, holding back the unfinished tail never changes the joined replacement.
TEST(Utf8, PiecesJoinToTheReplacementOfTheWhole) {
    const std::string text = "a\xf0\x9f\x98\x80\xff\xe2\x82\xc3\xa9\xed\xa0\x80z\xf0\x9f";
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        const std::string_view all = text;
        const std::size_t held = complete_utf8_prefix(all.substr(0, cut));
        EXPECT_EQ(
            replace_invalid_utf8(all.substr(0, held)) + replace_invalid_utf8(all.substr(held)),
            replace_invalid_utf8(all))
            << cut;
    }
}

TEST(Utf8, CharactersAreCountedWhateverTheirLength) {
    EXPECT_EQ(num_characters(""), 0);
    EXPECT_EQ(num_characters("a\u00e9\u20ac\U0001F600"), 4);
}

TEST(Utf8, ACutTextEndsWithAWholeCharacter) {
    EXPECT_EQ(cut_utf8("ab\xe2\x82\xac", 5), "ab\xe2\x82\xac");
    EXPECT_EQ(cut_utf8("ab\xe2\x82\xac", 4), "ab");
    EXPECT_EQ(cut_utf8("ab\xe2\x82\xac", 2), "ab");
    EXPECT_EQ(cut_utf8("\xe2\x82\xac", 1), "");
    EXPECT_EQ(cut_utf8("", 0), "");
}

}  // namespace
}  // namespace pagoda::base
