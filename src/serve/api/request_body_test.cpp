#include "serve/api/request_body.h"

#include <gtest/gtest.h>

namespace pagoda::api {
namespace {

http::Request with_header(const char* name, const char* value) {
    return {.headers = {{name, value}}, .body = R"({"a": 1})"};
}

TEST(ParseBody, TakesJsonAndWhatNamesNoType) {
    EXPECT_TRUE(parse_body({.body = R"({"a": 1})"}).ok());
    for (const char* type : {"application/json", "Application/JSON ; charset=utf-8",
                             " application/json", "application/vnd.api+json"})
        EXPECT_TRUE(parse_body(with_header("Content-Type", type)).ok()) << type;
}

TEST(ParseBody, RefusesOtherTypesWith415AndSaysWhichIsExpected) {
    for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "application/jsonx",
                             "multipart/form-data; boundary=application/json", "+json", "", ";"}) {
        const auto body = parse_body(with_header("Content-Type", type));
        ASSERT_FALSE(body.ok()) << type;
        const http::ErrorBody error = to_http(body.error());
        EXPECT_EQ(error.status, 415);
        EXPECT_EQ(error.param, "content-type");
        for (const std::string& part : {std::string(type), std::string("application/json")})
            EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
    }
}

TEST(ParseBody, RefusesCompressedBodiesWith415) {
    EXPECT_TRUE(parse_body(with_header("Content-Encoding", "identity")).ok());
    const auto body = parse_body(with_header("Content-Encoding", "gzip"));
    ASSERT_FALSE(body.ok());
    EXPECT_EQ(to_http(body.error()).status, 415);
}

TEST(ParseBody, RefusesWhatIsNoObject) {
    for (const char* text : {"", "[]", "7", "{", "{} {}", "\xEF\xBB\xBF{}"}) {
        const auto body = parse_body({.body = text});
        ASSERT_FALSE(body.ok()) << text;
        EXPECT_EQ(to_http(body.error()).status, 400) << text;
    }
}

}  // namespace
}  // namespace pagoda::api
