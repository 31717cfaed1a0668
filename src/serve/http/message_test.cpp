#include "serve/http/message.h"

#include <gtest/gtest.h>

#include "serve/http/request_ids.h"
#include "serve/http/router.h"

namespace pagoda::http {
namespace {

// Keeps the one response of a request.
class Keeper final : public ResponseWriter {
  public:
    void send(Response response) override { sent = std::move(response); }
    void begin_stream(Response) override {}
    void write(std::string) override {}
    void end() override {}
    void on_disconnect(std::function<void()>) override {}
    std::optional<Response> sent;
};

Response ask(const Router& router, const std::string& method, const std::string& path) {
    Request request{.method = method, .path = path};
    const Routing routing = router.admit(request);
    if (routing.refusal) return *routing.refusal;
    const auto keeper = std::make_shared<Keeper>();
    routing.route->handler(std::move(request), keeper);
    EXPECT_TRUE(keeper->sent.has_value());
    return keeper->sent.value_or(Response{.status = 0});
}

Router two_routes() {
    Router router;
    const auto answer = [](const char* text) {
        return [text](Request&&, const std::shared_ptr<ResponseWriter>& writer) {
            writer->send({.body = text});
        };
    };
    router.add(
        {.method = "GET", .path = "/open", .handler = answer("open"), .access = Access::kPublic});
    router.add({.method = "GET", .path = "/models/*", .handler = answer("model")});
    router.add({.method = "POST", .path = "/models/*", .handler = answer("posted")});
    return router;
}

TEST(Router, FindsRoutesByMethodAndPath) {
    const Router router = two_routes();
    EXPECT_EQ(ask(router, "GET", "/models/a/b").body, "model");
    EXPECT_EQ(ask(router, "HEAD", "/models/a").body, "model");
    EXPECT_EQ(ask(router, "POST", "/models/a").body, "posted");
    EXPECT_EQ(ask(router, "GET", "/models/").status, 404);
    const Response wrong = ask(router, "DELETE", "/models/a");
    EXPECT_EQ(wrong.status, 405);
    EXPECT_EQ(wrong.headers.front(), (Header{"Allow", "GET, HEAD, POST"}));
}

TEST(Router, FiltersGuardEverythingThatIsNotPublic) {
    Router router = two_routes();
    router.add_filter([](Request&) { return error_response({.status = 401, .message = "no"}); });
    EXPECT_EQ(ask(router, "GET", "/open").status, 200);
    EXPECT_EQ(ask(router, "GET", "/models/a").status, 401);
    EXPECT_EQ(ask(router, "GET", "/nothing").status, 401) << "routes are not told to strangers";
}

TEST(Router, TheOperatorsRoutesAskTheirOwnFilterAlone) {
    Router router = two_routes();
    router.add({.method = "POST",
                .path = "/admin/x",
                .handler =
                    [](Request&&, const std::shared_ptr<ResponseWriter>& writer) {
                        writer->send({.body = "done"});
                    },
                .access = Access::kAdmin});
    router.add_filter([](Request&) { return error_response({.status = 401, .message = "no"}); });
    EXPECT_EQ(ask(router, "POST", "/admin/x").body, "done");
    router.add_admin_filter([](Request&) { return error_response({.status = 403}); });
    EXPECT_EQ(ask(router, "POST", "/admin/x").status, 403);
    EXPECT_EQ(ask(router, "GET", "/models/a").status, 401);
}

TEST(ErrorResponse, HasOpenAisShape) {
    const auto body =
        base::Json::parse(error_response({.status = 503, .message = "full"}).body).value();
    const base::Json* error = body.find("error");
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(error->find("message")->as_string(), "full");
    EXPECT_TRUE(error->find("param")->is_null());
    EXPECT_EQ(error_response({.status = 503}).headers.front().first, "Retry-After");
    EXPECT_EQ(error_response({.status = 401}).headers,
              std::vector<Header>({{"WWW-Authenticate", "Bearer"}}));
}

TEST(PercentDecode, RefusesWhatIsMalformedOrHoldsANul) {
    EXPECT_EQ(percent_decode("/a%20b%2Fc", false), "/a b/c");
    EXPECT_EQ(percent_decode("a+b", true), "a b");
    for (const char* bad : {"%", "%2", "%zz", "a%00b"})
        EXPECT_EQ(percent_decode(bad, false), std::nullopt) << bad;
}

TEST(Request, HeaderNamesHaveNoCase) {
    const Request request{.headers = {{"X-Api-Key", "k"}}};
    ASSERT_NE(request.header("x-api-key"), nullptr);
    EXPECT_EQ(request.header("x-api"), nullptr);
}

TEST(RequestIds, AreDifferentAndOnlySaneOnesAreRepeated) {
    RequestIds ids;
    EXPECT_NE(ids.next(), ids.next());
    EXPECT_TRUE(RequestIds::is_sane("req-1"));
    for (const std::string& bad : {std::string(), std::string("a b"), std::string("a\r\nb"),
                                   std::string("\x80"), std::string(129, 'x')})
        EXPECT_FALSE(RequestIds::is_sane(bad));
}

}  // namespace
}  // namespace pagoda::http
