#include "serve/api/field_reader.h"

#include <gtest/gtest.h>

namespace pagoda::api {
namespace {

using base::Json;

// What an integer field between 1 and 10 makes of a JSON value: nothing where it is refused.
std::optional<std::int64_t> read_integer(const char* value) {
    Json body = Json::parse(std::string("{\"n\": ") + value + "}").value();
    FieldReader reader(body);
    const std::int64_t result = reader.integer("n", /*fallback=*/5, /*least=*/1, /*most=*/10);
    if (!reader.ok()) {
        EXPECT_EQ(reader.error().param, "n");
        return std::nullopt;
    }
    return result;
}

TEST(FieldReader, IntegersAreCheckedForKindAndRange) {
    EXPECT_EQ(read_integer("7"), 7);
    EXPECT_EQ(read_integer("7.0"), 7);
    EXPECT_EQ(read_integer("null"), 5);
    for (const char* bad : {"0", "11", "-1", "7.5", "\"7\"", "true", "[]", "{}", "1e308",
                            "9007199254740993", "9223372036854775807", "-9223372036854775808"})
        EXPECT_EQ(read_integer(bad), std::nullopt) << bad;
}

TEST(FieldReader, AnErrorNamesFieldValueAndLimits) {
    Json body = Json::parse(R"({"top_k": -3})").value();
    FieldReader reader(body);
    static_cast<void>(reader.integer("top_k", 0, -1, 7));
    ASSERT_FALSE(reader.ok());
    for (const char* part : {"top_k", "-3", "-1", "7"})
        EXPECT_NE(reader.error().message.find(part), std::string::npos) << part;
}

TEST(FieldReader, TheFirstErrorStays) {
    Json body = Json::parse(R"({"a": "x", "b": "y"})").value();
    FieldReader reader(body);
    static_cast<void>(reader.boolean("a", false));
    static_cast<void>(reader.boolean("b", false));
    EXPECT_EQ(reader.error().param, "a");
}

TEST(FieldReader, WhatNobodyReadIsReportedInOrder) {
    Json body = Json::parse(R"({"z": 1, "known": 2, "a": null})").value();
    FieldReader reader(body);
    static_cast<void>(reader.any("known"));
    EXPECT_EQ(reader.unread(), (std::vector<std::string>{"z", "a"}));
}

TEST(FieldReader, FieldsOfAnObjectInsideCarryItsName) {
    Json body = Json::parse(R"({"odd": 1, "options": {"on": 5, "foo": 2}})").value();
    FieldReader reader(body);
    EXPECT_FALSE(reader.nested("absent"));
    auto inner = reader.nested("options");
    ASSERT_TRUE(inner);
    static_cast<void>(inner->boolean("on", false));
    reader.absorb(*inner);
    EXPECT_EQ(reader.error().param, "options.on");
    EXPECT_EQ(reader.unread(), (std::vector<std::string>{"odd", "options.foo"}));
}

TEST(FieldReader, WhatIsReportedIsBounded) {
    Json body = Json::object();
    body.set(std::string(1U << 20, 'x'), 1);
    for (int number = 0; number < 1000; ++number) body.set("x" + std::to_string(number), number);
    FieldReader reader(body);
    reader.ignore("twice");
    reader.ignore("twice");
    const std::vector<std::string> names = reader.unread();
    EXPECT_LE(names.size(), 401U);
    EXPECT_LT(names.front().size(), 300U);
}

TEST(FieldReader, AValueCanBeTakenOutAndCountsAsRead) {
    Json body = Json::parse(R"({"messages": [1, 2]})").value();
    FieldReader reader(body);
    EXPECT_EQ(reader.take("messages"), Json::parse("[1, 2]").value());
    EXPECT_TRUE(reader.take("absent").is_null());
    EXPECT_TRUE(reader.unread().empty());
}

TEST(FieldReader, AFieldThatAsksForNothingIsNotRefused) {
    Json body = Json::parse(R"({"store": false, "audio": {}})").value();
    FieldReader reader(body);
    reader.refuse_unless("absent", false, "no");
    reader.refuse_unless("store", true, "no");
    EXPECT_TRUE(reader.ok());
    reader.refuse_unless("audio", false, "it is not offered");
    ASSERT_FALSE(reader.ok());
    EXPECT_EQ(reader.error().code, base::ErrorCode::kUnsupported);
}

TEST(Brief, LongValuesAreCutAtACharacter) {
    const std::string text = brief(Json(std::string(58, 'x') + "\xC3\xA9"));
    EXPECT_LE(text.size(), 70U);
    EXPECT_EQ(text.find('\xC3'), std::string::npos);
}

}  // namespace
}  // namespace pagoda::api
