#include "serve/http/request_log.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "serve/http/client_for_test.h"

namespace pagoda::http {
namespace {

using test::Client;
using test::TestServer;

// Lines of the log that a server leaves while `talk` talks to it.
template <class Talk>
std::string logged(base::LogLevel level, const TestServer::AddRoutes& routes, const Talk& talk) {
    testing::internal::CaptureStderr();
    {
        TestServer server({}, routes, level);
        talk(server);
        server.wait_answered();
    }
    return testing::internal::GetCapturedStderr();
}

void expect_line(const std::string& log, std::string_view part) {
    EXPECT_NE(log.find(part), std::string::npos) << part << "\n" << log;
}

// The line of a record, without its time.
std::string line_of(const RequestRecord& record, base::LogFormat format) {
    testing::internal::CaptureStderr();
    base::Logger logger({.format = format});
    log_request(logger, record);
    return testing::internal::GetCapturedStderr();
}

TEST(RequestLog, ALineSaysWhoAskedForWhatAndHowItEnded) {
    const RequestRecord record{.method = "POST",
                               .path = "/v1/chat/completions",
                               .id = "req-1",
                               .client = "key-0a1b2c3d",
                               .status = 200,
                               .bytes = 4711};
    const std::string text = line_of(record, base::LogFormat::kText);
    expect_line(text, " info: request method=POST path=/v1/chat/completions status=200 ms=");
    expect_line(text, " bytes=4711 id=req-1 client=key-0a1b2c3d\n");
    const auto json = base::Json::parse(line_of(record, base::LogFormat::kJson));
    ASSERT_TRUE(json.ok());
    EXPECT_EQ(json->find("message")->as_string(), "request");
    EXPECT_EQ(json->find("path")->as_string(), "/v1/chat/completions");
    EXPECT_EQ(json->find("status")->as_int(), 200);
    EXPECT_EQ(json->find("bytes")->as_int(), 4711);
    EXPECT_EQ(json->find("client")->as_string(), "key-0a1b2c3d");
}

TEST(RequestLog, NothingFromOutsideEndsAValueOrALine) {
    const RequestRecord record{.method = "G\"T",
                               .path = "/a b\r\nrequest status=200\x1b[2J\xe2\x80\xae%",
                               .id = "x=y",
                               .status = 404};
    const std::string text = line_of(record, base::LogFormat::kText);
    expect_line(text,
                "request method=G%22T path=/a%20b%0D%0Arequest%20status%3D200%1B[2J%E2%80%AE%25 "
                "status=404 ms=");
    expect_line(text, " bytes=0 id=x%3Dy client=-\n");
    const auto json = base::Json::parse(line_of(record, base::LogFormat::kJson));
    ASSERT_TRUE(json.ok());
    EXPECT_EQ(json->find("method")->as_string(), record.method);
    EXPECT_EQ(json->find("path")->as_string(), record.path);
    const RequestRecord longest{.path = std::string(100'000, 'a')};
    EXPECT_LT(line_of(longest, base::LogFormat::kText).size(), 400U);
}

TEST(RequestLog, EveryFinishedRequestLeavesOneLine) {
    const std::string log = logged(base::LogLevel::kInfo, nullptr, [](const TestServer& server) {
        Client client(server.port());
        client.send(test::post("/echo?secret=1", "the body", "X-Request-Id: mine-1\r\n"));
        EXPECT_TRUE(client.answer().ends_with("the body"));
        client.send(test::get("/no%20where%0A"));
        static_cast<void>(client.answer());
        client.send("nonsense\r\n\r\n");
        static_cast<void>(client.rest());
    });
    expect_line(log, "info: request method=POST path=/echo status=200 ms=");
    expect_line(log, " id=mine-1 client=-\n");
    expect_line(log, "info: request method=GET path=/no%20where%0A status=404 ms=");
    expect_line(log, "info: request method=- path=- status=400 ms=");
    EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 3) << log;
    EXPECT_EQ(log.find("secret"), std::string::npos) << log;
    EXPECT_EQ(log.find("the body"), std::string::npos) << log;
}

TEST(RequestLog, QuietRoutesAreLoggedAtDebugLevelAlone) {
    const auto ask = [](const TestServer& server) {
        Client client(server.port());
        client.send(test::get("/now"));
        EXPECT_TRUE(client.answer().ends_with("now"));
    };
    EXPECT_EQ(logged(base::LogLevel::kInfo, nullptr, ask), "");
    expect_line(logged(base::LogLevel::kDebug, nullptr, ask),
                "debug: request method=GET path=/now status=200 ms=");
}

TEST(RequestLog, AReaderThatLeftIs499) {
    test::Gate gate;
    const auto routes = [&gate](Router& router) {
        router.add({.method = "GET",
                    .path = "/stream",
                    .handler = [&gate](Request&&, const std::shared_ptr<ResponseWriter>& writer) {
                        writer->begin_stream({});
                        gate.wait();
                    }});
    };
    expect_line(logged(base::LogLevel::kInfo, routes,
                       [&gate](TestServer& server) {
                           {
                               Client client(server.port());
                               client.send(test::get("/stream"));
                               EXPECT_NE(client.until("\r\n\r\n"), "");
                           }
                           server.wait_answered();
                           gate.open();
                       }),
                "info: request method=GET path=/stream status=499 ms=");
}

// It may leave before the server hears that the last byte is out, most of all where threads are
// many.
TEST(RequestLog, AReaderThatLeavesWithItsAnswerIsNot499) {
    constexpr int kReaders = 300;
    const std::string lines = logged(base::LogLevel::kInfo, nullptr, [](TestServer& server) {
        for (int number = 0; number < kReaders; ++number) {
            Client client(server.port());
            client.send(test::post("/echo", "hello"));
            EXPECT_EQ(test::status_of(client.answer()), 200);
        }
        server.wait_answered();
    });
    EXPECT_EQ(lines.find("status=499"), std::string::npos) << lines;
}

}  // namespace
}  // namespace pagoda::http
