#include "serve/http/server.h"

#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "serve/http/client_for_test.h"

namespace pagoda::http {
namespace {

using std::chrono::milliseconds;
using test::Client;
using test::error_member;
using test::status_of;
using test::TestServer;

ServerOptions impatient() {
    return {.header_timeout = milliseconds(100), .idle_timeout = milliseconds(200)};
}

constexpr std::string_view kHead = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n";

void expect_late(const std::string& answer, std::string_view part, std::string_view limit) {
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n")) << answer;
    EXPECT_NE(answer.find("\r\nConnection: close\r\n"), std::string::npos) << answer;
    EXPECT_EQ(error_member(answer, "code"), "request_timeout");
    const std::string message = error_member(answer, "message");
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_NE(message.find(limit), std::string::npos) << message;
}

TEST(Server, AHeaderThatDoesNotEndInTimeIsAnsweredWith408) {
    const TestServer server(impatient());
    for (const std::string_view begun : {kHead, kHead.substr(0, 3)}) {
        Client client(server.port());
        client.send(begun);
        expect_late(client.rest(), "header did not come within 0.1 s", "header_timeout");
    }
}

TEST(Server, ABodyThatDoesNotEndInTimeIsAnsweredWith408) {
    const TestServer server(impatient());
    for (const std::string_view begun : {"", "1234"}) {
        Client client(server.port());
        client.send(std::string(kHead) + "\r\n" + std::string(begun));
        expect_late(client.rest(), "body did not come within 0.2 s", "idle_timeout");
    }
}

// A piece now and then keeps nothing open: the limits are of the whole header and the whole body.
TEST(Server, SlowPiecesDoNotPutTheDeadlineOff) {
    const TestServer server(impatient());
    Client header(server.port());
    header.send("POST /echo HTTP/1.1\r\n");
    header.send_until_answered("X: y\r\n");
    expect_late(header.rest(), "header", "header_timeout");
    Client body(server.port());
    body.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    body.send_until_answered("x");
    expect_late(body.rest(), "body", "idle_timeout");
}

TEST(Server, ALargeBodyThatComesSteadilyMayTakeLongerThanThat) {
    const TestServer server(impatient());
    constexpr int kPieces = 10;
    const std::string piece(16 << 10, 'x');
    Client client(server.port());
    const auto began = std::chrono::steady_clock::now();
    client.send(fmt::format("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
                            kPieces * piece.size()));
    for (int number = 0; number < kPieces; ++number) {
        client.rest_for(milliseconds(30));
        client.send(piece);
    }
    EXPECT_EQ(status_of(client.answer()), 200);
    EXPECT_GT(std::chrono::steady_clock::now() - began, impatient().idle_timeout);
}

TEST(Server, ASilentConnectionClosesWithoutAnAnswer) {
    const TestServer server(impatient());
    Client fresh(server.port());
    EXPECT_EQ(fresh.rest(), "");
    Client used(server.port());
    used.send(std::string(kHead) + "\r\nhello");
    const std::string answer = used.rest();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\nhello")) << answer;
}

TEST(Server, TheSecondRequestOfAConnectionIsAnsweredWhenItIsLate) {
    const TestServer server(impatient());
    Client client(server.port());
    client.send(std::string(kHead) + "\r\nhello" + std::string(kHead));
    const std::string answers = client.rest();
    const std::size_t second = answers.find("helloHTTP/1.1");
    ASSERT_NE(second, std::string::npos) << answers;
    expect_late(answers.substr(second + 5), "header", "header_timeout");
}

TEST(Server, PipelinedRequestsAreAnsweredInTheirOrder) {
    const TestServer server;
    Client client(server.port());
    std::string requests;
    for (int number = 0; number < 50; ++number)
        requests += number % 5 == 0 ? test::get("/now")
                                    : test::post("/echo", "body " + std::to_string(number));
    client.send(requests);
    for (int number = 0; number < 50; ++number) {
        const std::string answer = client.answer();
        EXPECT_EQ(status_of(answer), 200);
        const std::string body = number % 5 == 0 ? "now" : "body " + std::to_string(number);
        EXPECT_TRUE(answer.ends_with("\r\n\r\n" + body)) << number << ": " << answer;
    }
}

TEST(Server, AHeaderOverTheLimitIsAnsweredWith431) {
    const TestServer server({.max_header_bytes = 1024});
    Client client(server.port());
    client.send("GET /now HTTP/1.1\r\nHost: x\r\nX-Long: " + std::string(4096, 'y') + "\r\n\r\n");
    const std::string answer = client.rest();
    EXPECT_EQ(status_of(answer), 431);
    EXPECT_EQ(error_member(answer, "code"), "header_too_large");
    EXPECT_NE(error_member(answer, "message").find("1024"), std::string::npos);
}

TEST(Server, AConnectionBeyondTheMostIsToldAndOneThatEndsMakesRoom) {
    const TestServer server({.max_connections = 2});
    Client first(server.port());
    {
        Client second(server.port());
        for (Client* client : {&first, &second}) {
            client->send(test::get("/now"));
            EXPECT_EQ(status_of(client->answer()), 200);
        }
        Client third(server.port());
        const std::string answer = third.rest();
        EXPECT_EQ(status_of(answer), 503);
        EXPECT_NE(answer.find("\r\nRetry-After: 1\r\n"), std::string::npos) << answer;
        second.close_sending();
        EXPECT_EQ(second.rest(), "") << "the server closes its side too";
    }
    // The server drops a connection just after it has closed it.
    for (int status = 503; status != 200;) {
        Client next(server.port());
        next.send(test::get("/now"));
        status = status_of(next.answer());
    }
}

TEST(Server, HeadIsAnsweredWithoutABodyAndWithItsLength) {
    const TestServer server;
    Client client(server.port());
    client.send("HEAD /now HTTP/1.1\r\nHost: x\r\n\r\n" + test::get("/now"));
    const std::string head = client.until("\r\n\r\n");
    EXPECT_NE(head.find("\r\nContent-Length: 3\r\n"), std::string::npos) << head;
    EXPECT_TRUE(client.answer().ends_with("\r\n\r\nnow"));
}

TEST(Server, Http10KeepsTheConnectionOnlyWhenAsked) {
    const TestServer server;
    Client once(server.port());
    once.send("GET /now HTTP/1.0\r\n\r\n");
    EXPECT_TRUE(once.rest().ends_with("\r\n\r\nnow"));
    Client kept(server.port());
    for (int number = 0; number < 2; ++number) {
        kept.send("GET /now HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        EXPECT_NE(kept.answer().find("\r\nConnection: keep-alive\r\n"), std::string::npos);
    }
}

}  // namespace
}  // namespace pagoda::http
