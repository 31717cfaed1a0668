#include "serve/gateway/api_keys.h"

#include <gtest/gtest.h>

namespace pagoda::gateway {
namespace {

const std::vector<std::string> kKeys = {"sk-first-key-1", "sk-second-key-2"};

std::shared_ptr<const ApiKeys> make_keys() {
    auto keys = ApiKeys::create(kKeys);
    EXPECT_TRUE(keys.ok());
    return std::make_shared<ApiKeys>(std::move(keys).value());
}

http::Request request_with(std::string name, std::string value) {
    http::Request request{.method = "GET", .path = "/v1/models"};
    if (!name.empty()) request.headers.emplace_back(std::move(name), std::move(value));
    return request;
}

std::string error_of(std::vector<std::string> keys) {
    const auto made = ApiKeys::create(keys);
    return made ? "" : made.error().message;
}

TEST(ApiKeys, FindsKnownKeysAndNoOthers) {
    const auto keys = make_keys();
    EXPECT_TRUE(keys->find("sk-first-key-1"));
    EXPECT_TRUE(keys->find("sk-second-key-2"));
    for (const std::string_view wrong :
         {"", "sk-first-key-", "sk-first-key-12", "SK-FIRST-KEY-1", " sk-first-key-1"})
        EXPECT_FALSE(keys->find(wrong)) << wrong;
    EXPECT_FALSE(keys->find(std::string("sk-first-key-1\0", 15)));
}

TEST(ApiKeys, NamesAClientByItsKeyAloneAndNeverSpellsIt) {
    const auto keys = make_keys();
    const auto other = ApiKeys::create(std::vector<std::string>{"another-key", kKeys[0]});
    ASSERT_TRUE(other.ok());
    EXPECT_EQ(keys->find(kKeys[0])->client, other->find(kKeys[0])->client);
    EXPECT_EQ(keys->find(kKeys[0])->name, other->find(kKeys[0])->name);
    EXPECT_NE(keys->find(kKeys[0])->client, keys->find(kKeys[1])->client);
    EXPECT_EQ(keys->find(kKeys[0])->name.find("first"), std::string::npos);
}

TEST(ApiKeys, RefusesKeysThatNoClientCouldSendAndSaysWhich) {
    EXPECT_EQ(error_of({}), "there is no API key in the list");
    EXPECT_EQ(error_of({"long-enough", "short"}), "API key 2 has 5 characters, must have 8 to 512");
    EXPECT_EQ(error_of({std::string(513, 'k')}),
              "API key 1 has 513 characters, must have 8 to 512");
    EXPECT_EQ(error_of({"with a blank"}), "API key 1 must consist of visible ASCII characters");
    EXPECT_EQ(error_of({"umlaut-\xc3\xa4-key"}),
              "API key 1 must consist of visible ASCII characters");
}

TEST(ApiKeys, CountsARepeatedKeyOnce) {
    const auto keys = ApiKeys::create(std::vector<std::string>{"same-key-1", "same-key-1"});
    ASSERT_TRUE(keys.ok());
    EXPECT_EQ(keys->size(), 1U);
}

TEST(KeyFilter, TakesBearerInAnyCaseAndXApiKey) {
    const http::Filter filter = key_filter(make_keys());
    for (const auto& [name, value] :
         std::vector<http::Header>{{"Authorization", "Bearer sk-first-key-1"},
                                   {"authorization", "bearer sk-first-key-1"},
                                   {"AUTHORIZATION", "BEARER   sk-first-key-1 "},
                                   {"x-api-key", "sk-first-key-1"},
                                   {"X-Api-Key", " sk-first-key-1"}}) {
        http::Request request = request_with(name, value);
        EXPECT_FALSE(filter(request)) << name << ": " << value;
        ASSERT_TRUE(request.principal) << name << ": " << value;
        EXPECT_EQ(request.principal->client, make_keys()->find(kKeys[0])->client);
    }
}

TEST(KeyFilter, AnswersWithoutAKnownKey401InTheShapeOfOpenAI) {
    const http::Filter filter = key_filter(make_keys());
    for (const auto& [name, value] :
         std::vector<http::Header>{{"", ""},
                                   {"authorization", "Bearer wrong-key-1"},
                                   {"authorization", "Bearer "},
                                   {"authorization", "Basic sk-first-key-1"},
                                   {"authorization", "sk-first-key-1"},
                                   {"x-api-key", ""},
                                   {"x-api-key", "sk-first-key-1,sk-second-key-2"}}) {
        http::Request request = request_with(name, value);
        const auto response = filter(request);
        ASSERT_TRUE(response) << name << ": " << value;
        EXPECT_EQ(response->status, 401);
        EXPECT_EQ(response->headers, std::vector<http::Header>({{"WWW-Authenticate", "Bearer"}}));
        EXPECT_FALSE(request.principal);
        const auto body = base::Json::parse(response->body);
        ASSERT_TRUE(body.ok());
        const base::Json* error = body->find("error");
        ASSERT_NE(error, nullptr);
        EXPECT_EQ(error->find("code")->as_string(), "invalid_api_key");
        EXPECT_EQ(response->body.find("sk-first"), std::string::npos);
    }
}

TEST(KeyFilter, GoesOnToXApiKeyWhenAuthorizationIsOfAnotherScheme) {
    const http::Filter filter = key_filter(make_keys());
    http::Request request = request_with("authorization", "Basic dXNlcjpwYXNz");
    request.headers.emplace_back("x-api-key", "sk-second-key-2");
    EXPECT_FALSE(filter(request));
    EXPECT_EQ(request.principal->client, make_keys()->find(kKeys[1])->client);
}

TEST(AddressFilter, LetsEveryoneInAndTellsAddressesApart) {
    const http::Filter filter = address_filter();
    http::Request one{.remote_address = "192.0.2.1"};
    http::Request again{.remote_address = "192.0.2.1"};
    http::Request other{.remote_address = "192.0.2.2"};
    EXPECT_FALSE(filter(one) || filter(again) || filter(other));
    EXPECT_EQ(one.principal->client, again.principal->client);
    EXPECT_NE(one.principal->client, other.principal->client);
}

TEST(KeyFile, HoldsAKeyALineWithCommentsAndBlankLines) {
    const auto keys =
        parse_key_file("# clients\nsk-first-key-1\r\n\n  sk-second-key-2  ", "keys.txt");
    ASSERT_TRUE(keys.ok());
    EXPECT_EQ(*keys, kKeys);
}

TEST(KeyFile, IsRefusedWithItsNameAndTheLineThatIsWrong) {
    const auto error_of = [](std::string_view text) {
        const auto keys = parse_key_file(text, "keys.txt");
        return keys ? "" : keys.error().message;
    };
    EXPECT_EQ(error_of("# nobody\n\n"), "keys.txt: holds no API key");
    EXPECT_EQ(error_of(""), "keys.txt: holds no API key");
    EXPECT_EQ(error_of("# two\nsk-first-key-1\n\nshort\n"),
              "keys.txt:4: the API key has 5 characters, must have 8 to 512");
    EXPECT_EQ(error_of("with a blank"),
              "keys.txt:1: the API key must consist of visible ASCII characters");
}

TEST(AdminFilter, WithoutAKeyIsForProgramsOnThisMachine) {
    const http::Filter filter = admin_filter(nullptr);
    http::Request local{.is_loopback = true};
    EXPECT_FALSE(filter(local));
    http::Request remote{.is_loopback = false};
    ASSERT_TRUE(filter(remote));
    EXPECT_EQ(filter(remote)->status, 403);
    for (const char* name :
         {"X-Forwarded-For", "X-Forwarded-Proto", "X-Real-IP", "Forwarded", "Via", "Origin"}) {
        http::Request forwarded{.headers = {{name, "somebody"}}, .is_loopback = true};
        ASSERT_TRUE(filter(forwarded)) << name;
        EXPECT_EQ(filter(forwarded)->status, 403);
    }
}

TEST(AdminFilter, WithAKeyAsksForThatOne) {
    const std::string key = "operators-key";
    const http::Filter filter =
        admin_filter(std::make_shared<const ApiKeys>(ApiKeys::create({&key, 1}).value()));
    http::Request none{.is_loopback = true};
    EXPECT_EQ(filter(none)->status, 401);
    http::Request other{.headers = {{"authorization", "Bearer somebody-elses"}}};
    EXPECT_EQ(filter(other)->status, 401);
    http::Request right{.headers = {{"authorization", "Bearer operators-key"}}};
    EXPECT_FALSE(filter(right));
}

}  // namespace
}  // namespace pagoda::gateway
