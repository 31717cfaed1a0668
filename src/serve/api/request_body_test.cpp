#include "serve/api/request_body.h"

#include <gtest/gtest.h>

namespace pagoda::api {
namespace {

using base::Json;

base::Result<Json> read_body(http::Request request) {
    return parse_body(request);
}

http::Request with_header(const char* name, const char* value) {
    return {.headers = {{name, value}}, .body = R"({"a": 1})"};
}

TEST(ParseBody, TakesJsonAndWhatNamesNoType) {
    EXPECT_TRUE(read_body({.body = R"({"a": 1})"}).ok());
    for (const char* type : {"application/json", "Application/JSON ; charset=utf-8",
                             " application/json", "application/vnd.api+json"})
        EXPECT_TRUE(read_body(with_header("Content-Type", type)).ok()) << type;
}

TEST(ParseBody, RefusesOtherTypesWith415AndSaysWhichIsExpected) {
    for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "application/jsonx",
                             "multipart/form-data; boundary=application/json", "+json", "", ";"}) {
        const auto body = read_body(with_header("Content-Type", type));
        ASSERT_FALSE(body.ok()) << type;
        const http::ErrorBody error = to_http(body.error());
        EXPECT_EQ(error.status, 415);
        EXPECT_EQ(error.param, "content-type");
        for (const std::string& part : {std::string(type), std::string("application/json")})
            EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
    }
}

TEST(ParseBody, RefusesCompressedBodiesWith415) {
    EXPECT_TRUE(read_body(with_header("Content-Encoding", "identity")).ok());
    const auto body = read_body(with_header("Content-Encoding", "gzip"));
    ASSERT_FALSE(body.ok());
    EXPECT_EQ(to_http(body.error()).status, 415);
}

TEST(ParseBody, RefusesWhatIsNoObject) {
    for (const char* text : {"", "[]", "7", "{", "{} {}", "\xEF\xBB\xBF{}"}) {
        const auto body = read_body({.body = text});
        ASSERT_FALSE(body.ok()) << text;
        EXPECT_EQ(to_http(body.error()).status, 400) << text;
    }
}

TEST(ParseBody, CountsTheValuesOfABodyThatHasTooMany) {
    std::string body = R"({"prompt": [0)";
    for (std::size_t value = 0; value < kMaxBodyValues; ++value) body += ",0";
    const auto refused = read_body({.body = body + "]}"});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(to_http(refused.error()).status, 400);
    for (const std::size_t number : {kMaxBodyValues, kMaxBodyValues + 3})
        EXPECT_NE(refused.error().message.find(std::to_string(number)), std::string::npos)
            << refused.error().message;
}

TEST(ParseBody, LeavesNoSecondCopyOfTheBody) {
    http::Request request{.body = R"({"prompt": ")" + std::string(1U << 20, 'x') + "\"}"};
    ASSERT_TRUE(parse_body(request).ok());
    EXPECT_LT(request.body.capacity(), 100U);
}

TEST(CheckModel, NamesALongModelInBrief) {
    const ApiContext context{.model_names = {"ours"}};
    EXPECT_TRUE(check_model(context, "ours").ok());
    const auto short_one = check_model(context, "theirs");
    ASSERT_FALSE(short_one.ok());
    EXPECT_EQ(short_one.error().message,
              "the model \"theirs\" does not exist; this server has \"ours\"");
    const auto long_one = check_model(context, std::string(3U << 20, 'x'));
    ASSERT_FALSE(long_one.ok());
    EXPECT_LT(long_one.error().message.size(), 200U);
}

TEST(IgnoredFields, AreWrittenAsOneLineOfBoundedLength) {
    http::Response response;
    add_ignored_fields({"plain", "stream_options.foo", "with\r\nline, and comma"}, response);
    ASSERT_EQ(response.headers.size(), 1U);
    EXPECT_EQ(response.headers.front().second, "plain, stream_options.foo, with??line??and?comma");
    http::Response long_one;
    add_ignored_fields(std::vector<std::string>(1000, "name"), long_one);
    EXPECT_LT(long_one.headers.front().second.size(), 1100U);
    EXPECT_TRUE(long_one.headers.front().second.ends_with(", ..."));
}

}  // namespace
}  // namespace pagoda::api
