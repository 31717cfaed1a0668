#include "serve/http/exchange.h"

#include <future>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "serve/http/client_for_test.h"

namespace pagoda::http {
namespace {

using std::chrono::milliseconds;
using test::Client;
using test::status_of;
using test::TestServer;
using Writer = std::shared_ptr<ResponseWriter>;

TestServer::AddRoutes at_stream(std::function<void(const Writer&)> answer) {
    return [answer = std::move(answer)](Router& router) {
        router.add({.method = "GET",
                    .path = "/stream",
                    .handler = [answer](Request&&, const Writer& writer) { answer(writer); }});
    };
}

TEST(Exchange, AStreamGoesOutInChunksAndKeepsTheConnection) {
    const TestServer server({}, at_stream([](const Writer& writer) {
                                writer->begin_stream({.content_type = "text/event-stream"});
                                writer->write("data: 1\n\n");
                                writer->write("");
                                writer->write("data: 22\n\n");
                                writer->end();
                            }));
    Client client(server.port());
    client.send(test::get("/stream") + test::get("/now"));
    const std::string head = client.until("\r\n\r\n");
    EXPECT_NE(head.find("\r\nTransfer-Encoding: chunked\r\n"), std::string::npos) << head;
    EXPECT_EQ(client.until("0\r\n\r\n"), "9\r\ndata: 1\n\n\r\na\r\ndata: 22\n\n\r\n0\r\n\r\n");
    EXPECT_TRUE(client.answer().ends_with("now"));
}

TEST(Exchange, AStreamOfHttp10HasNoChunksAndEndsWithTheConnection) {
    const TestServer server({}, at_stream([](const Writer& writer) {
                                writer->begin_stream({.content_type = "text/event-stream"});
                                writer->write("data: 1\n\n");
                                writer->write("data: 2\n\n");
                                writer->end();
                            }));
    Client client(server.port());
    client.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    const std::string head = client.until("\r\n\r\n");
    EXPECT_EQ(head.find("Transfer-Encoding"), std::string::npos) << head;
    EXPECT_NE(head.find("\r\nConnection: close\r\n"), std::string::npos) << head;
    EXPECT_EQ(client.rest(), "data: 1\n\ndata: 2\n\n");
}

TEST(Exchange, TheHeadOfAStreamIsAllThatHeadGets) {
    const TestServer server({.heartbeat = milliseconds(1)}, at_stream([](const Writer& writer) {
                                writer->begin_stream({.content_type = "text/event-stream"});
                                writer->write("data: 1\n\n");
                                writer->end();
                            }));
    Client client(server.port());
    client.send("HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n" + test::get("/now"));
    EXPECT_EQ(status_of(client.until("\r\n\r\n")), 200);
    EXPECT_TRUE(client.until("\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST(Exchange, ASilentStreamHasHeartbeatsAndNoneBehindItsEnd) {
    test::Gate gate;
    const TestServer server({.heartbeat = milliseconds(10)}, at_stream([&](const Writer& writer) {
                                writer->begin_stream({.content_type = "text/event-stream"});
                                gate.wait();
                                writer->write("data: 1\n\n");
                                writer->end();
                            }));
    Client client(server.port());
    client.send(test::get("/stream"));
    for (int beat = 0; beat < 3; ++beat)
        EXPECT_TRUE(client.until(": heartbeat\n\n\r\n").ends_with("d\r\n: heartbeat\n\n\r\n"));
    gate.open();
    EXPECT_NE(client.until("0\r\n\r\n").find("data: 1"), std::string::npos);
    client.send(test::get("/now"));
    EXPECT_TRUE(client.answer().starts_with("HTTP/1.1 200 OK\r\n"));
}

// It takes something now and then, so that it is not stuck.
TEST(Exchange, AReaderThatStaysFarBehindLosesItsStream) {
    std::promise<void> leaving;
    std::future<void> left = leaving.get_future();
    const ServerOptions options{.idle_timeout = milliseconds(100), .max_unsent_bytes = 1 << 16};
    TestServer server(options, at_stream([&](const Writer& writer) {
                          writer->on_disconnect([&leaving] { leaving.set_value(); });
                          writer->begin_stream({.content_type = "text/event-stream"});
                          while (left.wait_for(milliseconds(1)) == std::future_status::timeout)
                              writer->write(std::string(64 << 10, 'x'));
                      }));
    Client client(server.port(), 64 << 10);
    client.send(test::get("/stream"));
    std::string last;
    for (std::string piece; !(piece = client.some(16 << 10)).empty(); last = piece)
        client.rest_for(milliseconds(2));
    server.wait_answered();
    EXPECT_FALSE(last.ends_with("0\r\n\r\n"));
}

TEST(Exchange, AReaderThatKeepsUpTakesAWriteOfAnySize) {
    const TestServer server({.max_unsent_bytes = 1 << 10}, at_stream([&](const Writer& writer) {
                                writer->begin_stream({.content_type = "text/event-stream"});
                                writer->write(std::string(1 << 20, 'x'));
                                writer->end();
                            }));
    Client client(server.port());
    client.send(test::get("/stream"));
    EXPECT_EQ(client.until("\r\n0\r\n\r\n").find("HTTP/1.1 200"), 0U);
}

TEST(Exchange, ABurstThatIsReadInTimeCostsNobodyItsStream) {
    test::Gate gate;
    const TestServer server({.max_unsent_bytes = 1 << 10}, at_stream([&](const Writer& writer) {
                                writer->begin_stream({.content_type = "text/event-stream"});
                                // More than both sides' buffers hold.
                                for (int piece = 0; piece < 128; ++piece)
                                    writer->write(std::string(64 << 10, 'x'));
                                writer->write("the last");
                                writer->end();
                                gate.open();
                            }));
    Client client(server.port(), 64 << 10);
    client.send(test::get("/stream"));
    gate.wait();  // reads nothing before
    EXPECT_NE(client.until("\r\n0\r\n\r\n").find("the last"), std::string::npos);
}

TEST(Exchange, AReaderThatLeavesIsNoticedWhileItsAnswerIsMade) {
    test::Gate gate;
    TestServer server({}, at_stream([&](const Writer& writer) {
                          writer->on_disconnect([&gate] { gate.open(); });
                          gate.wait();
                      }));
    {
        const Client client(server.port());
        client.send(test::get("/stream"));
        gate.wait_for(1);
    }
    server.wait_answered();
}

TEST(Exchange, AHandlerThatThrowsIsAnsweredWith500) {
    const TestServer server(
        {}, at_stream([](const Writer&) { throw std::runtime_error("its own words"); }),
        base::LogLevel::kError);
    Client client(server.port());
    client.send(test::get("/stream") + test::get("/now"));
    const std::string answer = client.answer();
    EXPECT_EQ(status_of(answer), 500);
    EXPECT_EQ(answer.find("its own words"), std::string::npos) << answer;
    EXPECT_TRUE(client.answer().ends_with("now"));
}

TEST(Exchange, AHandlerThatThrowsBehindTheHeadOfAStreamEndsItWithAnError) {
    const TestServer server({}, at_stream([](const Writer& writer) {
                                writer->begin_stream({.content_type = "text/event-stream"});
                                writer->write("data: 1\n\n");
                                throw std::runtime_error("late");
                            }));
    Client client(server.port());
    client.send(test::get("/stream") + test::get("/now"));
    EXPECT_EQ(status_of(client.until("\r\n\r\n")), 200);
    const std::string stream = client.until("0\r\n\r\n");
    EXPECT_EQ(stream.find("HTTP/1.1"), std::string::npos) << stream;
    EXPECT_NE(stream.find("data: {\"error\":{\"message\":"), std::string::npos) << stream;
    EXPECT_TRUE(client.answer().ends_with("now"));
}

TEST(Exchange, WhatComesBehindTheEndOfAnAnswerIsDropped) {
    const TestServer server({}, at_stream([](const Writer& writer) {
                                writer->send({.body = "one"});
                                writer->send({.body = "two"});
                                writer->begin_stream({});
                                writer->write("data: 3\n\n");
                                writer->end();
                                throw std::runtime_error("late");
                            }));
    Client client(server.port());
    client.send(test::get("/stream") + test::get("/now"));
    EXPECT_TRUE(client.answer().ends_with("\r\n\r\none"));
    EXPECT_TRUE(client.answer().ends_with("\r\n\r\nnow"));
}

}  // namespace
}  // namespace pagoda::http
