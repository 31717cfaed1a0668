#include "base/json.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

namespace pagoda::base {
namespace {

Json parsed(std::string_view text) {
    Result<Json> result = Json::parse(text);
    EXPECT_TRUE(result.ok()) << text;
    return result.ok() ? std::move(result).value() : Json();
}

std::string error_of(std::string_view text, const Json::ParseLimits& limits = {}) {
    const Result<Json> result = Json::parse(text, limits);
    EXPECT_FALSE(result.ok()) << text.substr(0, 80);
    return result.ok() ? "" : result.error().message;
}

Json nested_arrays(int depth) {
    Json value = Json::array();
    for (int level = 1; level < depth; ++level) {
        Json outer = Json::array();
        outer.push_back(std::move(value));
        value = std::move(outer);
    }
    return value;
}

TEST(JsonParse, KeepsKindsAndTheOrderOfKeys) {
    const Json value = parsed(R"( {"z":[1,-2.5,true,false,null],"a":"x","m":{}} )");
    EXPECT_EQ(value.dump(), R"({"z":[1,-2.5,true,false,null],"a":"x","m":{}})");
    const Json::Array& items = value.find("z")->as_array();
    EXPECT_EQ(items[0].type(), Json::Type::kInt);
    EXPECT_EQ(items[1].type(), Json::Type::kDouble);
    EXPECT_EQ(items[2].type_name(), "boolean");
    EXPECT_EQ(items[4].type_name(), "null");
    EXPECT_EQ(value.find("absent"), nullptr);
    EXPECT_EQ(items[0].find("a"), nullptr);
}

TEST(JsonParse, IntegersEndAtInt64AndBecomeDoublesBeyond) {
    EXPECT_EQ(parsed("9223372036854775807").as_int(), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(parsed("-9223372036854775808").as_int(), std::numeric_limits<std::int64_t>::min());
    EXPECT_EQ(parsed("9007199254740993").as_int(), 9007199254740993);
    for (const char* text : {"9223372036854775808", "-9223372036854775809", "18446744073709551615",
                             "18446744073709551616", "1e308"}) {
        EXPECT_EQ(parsed(text).type(), Json::Type::kDouble) << text;
    }
    EXPECT_EQ(parsed("9223372036854775808").as_double(), 9223372036854775808.0);
}

TEST(JsonParse, RefusesNumbersBeyondADouble) {
    EXPECT_EQ(error_of("[1, 1e400]"), "line 1, column 5: this number is too large for a double");
    EXPECT_EQ(error_of("-1e999"), "line 1, column 1: this number is too large for a double");
    EXPECT_EQ(parsed("1e-400").as_double(), 0.0);
}

TEST(JsonParse, DecodesEscapes) {
    EXPECT_EQ(parsed(R"("\u0041\u00e9\u20ac\ud83d\ude00\n\"\\\/\b\f\r\t\u0000")").as_string(),
              std::string("A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n\"\\/\b\f\r\t\0", 19));
}

TEST(JsonParse, SaysWhereAndWhatIsWrong) {
    struct Case {
        std::string_view text;
        std::string_view message;
    };
    const Case cases[] = {
        {"", "line 1, column 1: the text ends too early"},
        {"  ", "line 1, column 3: the text ends too early"},
        {"[1,\n 2,]", "line 2, column 4: expected a value"},
        {"[1 2]", "line 1, column 4: expected ',' or ']'"},
        {"{\"a\" 1}", "line 1, column 6: expected ':' after the key"},
        {"{\"a\":1 \"b\":2}", "line 1, column 8: expected ',' or '}'"},
        {"{a:1}", "line 1, column 2: expected a key in double quotes"},
        {"{\"a\":1,}", "line 1, column 8: expected a key in double quotes"},
        {"[1", "line 1, column 3: the text ends too early"},
        {"\"abc", "line 1, column 5: the text ends inside a string"},
        {"\"a\nb\"", "line 1, column 3: a control character in a string must be escaped"},
        {"\"\\u12g4\"", "line 1, column 6: \\u in a string must be followed by four hex digits"},
        {"\"\\ud800\"", "line 1, column 8: an escaped surrogate in a string has no partner"},
        {"\"\\x\"",
         "line 1, column 3: this escape in a string is none of \\\" \\\\ \\/ \\b \\f \\n \\r \\t "
         "\\u"},
        {"[-]", "line 1, column 3: this number is malformed"},
        {"[1.]", "line 1, column 4: this number is malformed"},
        {"{} {}", "line 1, column 4: text after the document"},
        {"1 number overflow", "line 1, column 5: text after the document"},
        {"nul", "line 1, column 4: expected a value"},
        {"[12x]", "line 1, column 4: expected ',' or ']'"},
        {"[1 true]", "line 1, column 4: expected ',' or ']'"},
        {"[nu\n]", "line 1, column 4: expected a value"},
        {"[1, \"a\" \"b\"]", "line 1, column 9: expected ',' or ']'"},
        {"NaN", "line 1, column 1: expected a value"},
        {"'a'", "line 1, column 1: expected a value"},
        {"/**/1", "line 1, column 1: expected a value"},
        {"[\"\xc3\xa9\", x]", "line 1, column 7: expected a value"},
    };
    for (const Case& one : cases) EXPECT_EQ(error_of(one.text), one.message) << one.text;
}

TEST(JsonParse, RefusesLeadingZerosAndOtherLooseForms) {
    for (const char* text : {"01", "+1", ".5", "1e", "[1,,2]", "tru", "Infinity", "[1]]", "}",
                             "{\"a\":}", "{1:2}", "\"\t\"", "[,1]", "0x10"}) {
        EXPECT_FALSE(Json::parse(text).ok()) << text;
    }
}

TEST(JsonParse, RefusesBadBytes) {
    EXPECT_EQ(error_of("\xef\xbb\xbf{}"),
              "line 1, column 1: the text starts with a byte-order mark, which JSON forbids");
    EXPECT_EQ(error_of("{\n\"a\":\"\xff\"}"), "line 2, column 6: invalid UTF-8 at byte 0xff");
    EXPECT_EQ(error_of("\"\xed\xa0\x80\""), "line 1, column 2: invalid UTF-8 at byte 0xed");
    EXPECT_EQ(error_of(std::string_view("{}\0x", 4)),
              "line 1, column 3: the text holds a zero byte");
}

TEST(JsonParse, NamesTheDuplicateKeyAndItsPlace) {
    EXPECT_EQ(error_of("{\"a\":1,\n \"b\":{\"a\":1}, \"a\":2}"),
              "line 2, column 15: duplicate key \"a\"");
    EXPECT_EQ(error_of(R"({"\"\\":1,"\"\\":2})"), R"(line 1, column 11: duplicate key "\"\\")");
    EXPECT_EQ(error_of(R"({"":1,"":2})"), R"(line 1, column 7: duplicate key "")");
    const std::string key = "{\"" + std::string(100, 'k') + "\":";
    EXPECT_EQ(error_of(key + "1," + key.substr(1) + "2}"),
              "line 1, column 107: duplicate key \"" + std::string(64, 'k') + "\"...");
}

TEST(JsonParse, FindsDuplicatesAmongManyKeys) {
    std::string text = "{";
    for (int key = 0; key < 1000; ++key) text += "\"k" + std::to_string(key) + "\":0,";
    EXPECT_TRUE(Json::parse(text + "\"last\":0}").ok());
    EXPECT_NE(error_of(text + "\"k999\":0}").find("duplicate key \"k999\""), std::string::npos);
    EXPECT_NE(error_of(text + "\"k0\":0}").find("duplicate key \"k0\""), std::string::npos);
}

TEST(JsonParse, LimitsDepthAndNamesTheLimit) {
    const std::string open(128, '[');
    const std::string close(128, ']');
    EXPECT_TRUE(Json::parse(open + close).ok());
    EXPECT_EQ(error_of("[" + open + close + "]"),
              "line 1, column 129: nested deeper than 128 levels");
    EXPECT_EQ(error_of("{\"a\":[]}", {.max_depth = 1}),
              "line 1, column 6: nested deeper than 1 levels");
    EXPECT_EQ(parsed("1").as_int(), 1);
    EXPECT_TRUE(Json::parse("1", {.max_depth = 0}).ok());
}

TEST(JsonParse, LimitsTheNumberOfValues) {
    EXPECT_TRUE(Json::parse("[1,2,{}]", {.max_values = 4}).ok());
    EXPECT_EQ(error_of("[1,2,{},3,[{\"a\":4}]]", {.max_values = 4}),
              "the document has 8 values, at most 4 are allowed");
    EXPECT_EQ(error_of("[1,2,{\"a\":[[", {.max_values = 4}),
              "line 1, column 13: the text ends too early");
}

TEST(JsonParse, ManyOpenBracketsNeedNoStack) {
    const std::string open(100'000, '[');
    EXPECT_NE(error_of(open, {.max_depth = 10'000'000}).find("ends too early"), std::string::npos);
    const std::string close(100'000, ']');
    EXPECT_TRUE(Json::parse(open.substr(0, 100'000) + close, {.max_depth = 100'000}).ok());
}

TEST(JsonParse, AnObjectOfManyKeysTakesLinearTime) {
    // A search of all earlier keys for each would take minutes.
    std::string text = "{";
    for (int key = 0; key < 50'000; ++key) text += "\"key" + std::to_string(key) + "\":0,";
    text += "\"end\":0}";
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(parsed(text).as_object().size(), 50'001U);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

// The expected texts are Python's json.dumps of the same value.
TEST(JsonDump, WritesDoublesAsPythonDoes) {
    struct Case {
        double value;
        std::string_view text;
    };
    const Case cases[] = {
        {1.0, "1.0"},
        {-0.0, "-0.0"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {0.0001, "0.0001"},
        {0.00001, "1e-05"},
        {1.5e-7, "1.5e-07"},
        {100000.0, "100000.0"},
        {123456789012345.0, "123456789012345.0"},
        {1e15, "1000000000000000.0"},
        {9999999999999998.0, "9999999999999998.0"},
        {1e16, "1e+16"},
        {1.25e22, "1.25e+22"},
        {5e-324, "5e-324"},
        {std::numeric_limits<double>::max(), "1.7976931348623157e+308"},
        {std::numeric_limits<double>::quiet_NaN(), "null"},
        {std::numeric_limits<double>::infinity(), "null"},
        {-std::numeric_limits<double>::infinity(), "null"},
    };
    for (const Case& one : cases) EXPECT_EQ(Json(one.value).dump(), one.text);
}

TEST(JsonDump, NumbersReadBackEqual) {
    std::uint64_t state = 1;
    for (int round = 0; round < 5'000; ++round) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        double value = 0;
        static_assert(sizeof(value) == sizeof(state));
        std::memcpy(&value, &state, sizeof(value));
        if (!std::isfinite(value)) continue;
        const Json read = parsed(Json(value).dump());
        ASSERT_EQ(read.type(), Json::Type::kDouble);
        ASSERT_EQ(read.as_double(), value);
    }
}

TEST(JsonDump, IsValidWhateverTheBytes) {
    const Json value("a\xff\xe2\x82z\x01\x7f\"\\\b\f\n\r\t");
    EXPECT_EQ(value.dump(), "\"a\xef\xbf\xbd\xef\xbf\xbdz\\u0001\x7f\\\"\\\\\\b\\f\\n\\r\\t\"");
    EXPECT_TRUE(Json::parse(value.dump()).ok());
    for (int first = 0; first < 256; ++first) {
        std::string bytes;
        for (int second = 0; second < 256; ++second) {
            bytes.push_back(static_cast<char>(first));
            bytes.push_back(static_cast<char>(second));
        }
        Json object = Json::object();
        object.set(bytes, Json(bytes));
        EXPECT_TRUE(Json::parse(object.dump()).ok()) << first;
        EXPECT_TRUE(Json::parse(object.dump({.ensure_ascii = true})).ok()) << first;
    }
}

TEST(JsonDump, EscapesEverythingAboveAsciiOnDemand) {
    EXPECT_EQ(Json("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f").dump({.ensure_ascii = true}),
              R"("\u00e9\u20ac\ud83d\ude00\u007f")");
}

TEST(JsonDump, IndentsAsPythonDoes) {
    const Json value = parsed(R"({"b":[1,{"c":[]}],"a":{}})");
    EXPECT_EQ(value.dump({.indent = 2, .key_separator = ": "}),
              "{\n  \"b\": [\n    1,\n    {\n      \"c\": []\n    }\n  ],\n  \"a\": {}\n}");
    EXPECT_EQ(value.dump({.indent = 0}), "{\n\"b\":[\n1,\n{\n\"c\":[]\n}\n],\n\"a\":{}\n}");
    EXPECT_EQ(value.dump({.item_separator = ", ", .key_separator = ": "}),
              R"({"b": [1, {"c": []}], "a": {}})");
}

TEST(JsonDump, SortsKeysAtEveryLevelOnDemand) {
    EXPECT_EQ(
        parsed(R"({"b":{"z":1,"\u00e9":2,"a":3},"a":[{"y":1,"x":2}]})").dump({.sort_keys = true}),
        "{\"a\":[{\"x\":2,\"y\":1}],\"b\":{\"a\":3,\"z\":1,\"\xc3\xa9\":2}}");
}

TEST(Json, DeepValuesNeedNoStack) {
    constexpr int kDepth = 100'000;
    Json value = nested_arrays(kDepth);
    Json copy = value;
    EXPECT_TRUE(copy == value);
    EXPECT_EQ(copy.dump().size(), 2U * kDepth);
    copy = Json(1);
    value = nested_arrays(10);
    EXPECT_FALSE(copy == value);
}

TEST(Json, ANumberInAListTakes16Bytes) {
    EXPECT_EQ(sizeof(Json), 16U);
}

TEST(Json, AMemberCanBeFoundAndTakenOut) {
    Json json = Json::object().set("a", "long enough to lie on the heap").set("b", 1);
    const Json taken = std::move(*json.find("a"));
    EXPECT_EQ(taken, Json("long enough to lie on the heap"));
    EXPECT_TRUE(json.find("a")->is_null());
    EXPECT_EQ(json.find("c"), nullptr);
}

TEST(Json, CopiesAreIndependent) {
    const Json original = parsed(R"({"a":[1,2.5,"x",true,null,{"b":[]}]})");
    Json copy = original;
    copy.as_object()[0].second.push_back(Json(3));
    EXPECT_EQ(original.dump(), R"({"a":[1,2.5,"x",true,null,{"b":[]}]})");
    EXPECT_EQ(copy.dump(), R"({"a":[1,2.5,"x",true,null,{"b":[]},3]})");
}

TEST(Json, AMovedFromValueIsNull) {
    Json source = parsed("[1]");
    const Json target = std::move(source);
    EXPECT_TRUE(source.is_null());  // NOLINT: the state after the move is the promise
    EXPECT_EQ(target.dump(), "[1]");
}

TEST(Json, APartCanReplaceTheWhole) {
    Json value = parsed(R"([[{"a":[7]}]])");
    value = std::move(value.as_array()[0]);
    EXPECT_EQ(value.dump(), R"([{"a":[7]}])");
    value = value.as_array()[0];
    EXPECT_EQ(value.dump(), R"({"a":[7]})");
}

TEST(Json, EqualityIgnoresTheOrderOfKeysAndTheKindOfNumber) {
    EXPECT_TRUE(parsed(R"({"a":1,"b":[2]})") == parsed(R"({"b":[2.0],"a":1.0})"));
    EXPECT_FALSE(parsed(R"({"a":1})") == parsed(R"({"a":1,"b":2})"));
    EXPECT_FALSE(parsed(R"({"a":1})") == parsed(R"({"b":1})"));
    EXPECT_FALSE(parsed("[1,2]") == parsed("[2,1]"));
    EXPECT_FALSE(parsed("1") == parsed("true"));
    EXPECT_FALSE(parsed("[]") == parsed("{}"));
    EXPECT_FALSE(parsed("9007199254740993") == parsed("9007199254740992.0"));
    EXPECT_FALSE(parsed("9223372036854775807") == parsed("9223372036854775808"));
    EXPECT_FALSE(Json(std::nan("")) == Json(std::nan("")));
}

TEST(Json, SetReplacesOrAppends) {
    Json value = Json::object();
    value.set("a", 1).set("b", "x").set("a", 2);
    EXPECT_EQ(value.dump(), R"({"a":2,"b":"x"})");
}

TEST(JsonDeathTest, AskingForTheWrongKindIsABrokenInvariant) {
    EXPECT_DEATH((void)Json(1).as_string(), "is_string.*integer");
    EXPECT_DEATH((void)Json("x").as_double(), "is_number.*string");
}

static_assert(!std::is_constructible_v<Json, const int*>, "a pointer is no boolean");
static_assert(std::is_nothrow_move_constructible_v<Json>);

}  // namespace
}  // namespace pagoda::base
