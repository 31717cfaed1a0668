#include "serve/http/connection.h"

#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "serve/http/body_budget.h"
#include "serve/http/client_for_test.h"

namespace pagoda::http {
namespace {

using std::chrono::milliseconds;
using test::Client;
using test::error_member;
using test::status_of;
using test::TestServer;

constexpr std::string_view kBodyToCome = "Content-Length: 1000000\r\n";

// Lets in who says so.
void ask_for_a_word(Router& router) {
    router.add_filter([](Request& head) -> std::optional<Response> {
        EXPECT_TRUE(head.body.empty());
        if (head.header("x-word") != nullptr) return std::nullopt;
        return error_response({.status = 401, .message = "no", .code = "invalid_api_key"});
    });
}

std::string header(std::string_view path, std::string_view more) {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n" + std::string(more) + "\r\n";
}

TEST(Connection, WhoIsRefusedByTheHeaderNeedNotSendTheBody) {
    const TestServer server({.max_body_bytes = 2'000'000}, ask_for_a_word);
    const std::string body(kBodyToCome);
    const std::string known = "X-Word: y\r\n" + body;
    struct Case {
        std::string bytes;
        int status;
    };
    for (const Case& refused :
         {Case{header("/echo", body), 401}, Case{header("/nowhere", body), 401},
          Case{header("/nowhere", known), 404}, Case{header("/now", known), 405},
          Case{header("/echo", "X-Word: y\r\nContent-Length: 2000001\r\n"), 413},
          Case{header("/echo", "Content-Length: 2000001\r\n"), 401},
          Case{header("/echo", "Transfer-Encoding: chunked\r\n"), 401},
          Case{"POST /echo HTTP/1.1\r\nX-Word: y\r\n" + body + "\r\n", 400}}) {
        Client client(server.port());
        client.send(refused.bytes);
        const std::string answer = client.until("\r\n\r\n");
        EXPECT_EQ(status_of(answer), refused.status) << refused.bytes;
        EXPECT_NE(answer.find("\r\nConnection: close\r\n"), std::string::npos) << answer;
    }
}

TEST(Connection, AChunkedBodyOverTheLimitIsRefusedWhereItPassesIt) {
    const TestServer server({.max_body_bytes = 1000});
    Client client(server.port());
    client.send(header("/echo", "Transfer-Encoding: chunked\r\n"));
    client.send("3e8\r\n" + std::string(1000, 'x') + "\r\n1\r\n");
    EXPECT_EQ(status_of(client.until("\r\n\r\n")), 413);
}

TEST(Connection, ARefusalIsLoggedWithWhatCameOfTheRequest) {
    testing::internal::CaptureStderr();
    {
        const TestServer server({.max_body_bytes = 10, .max_header_bytes = 1024}, nullptr,
                                base::LogLevel::kInfo);
        Client large(server.port());
        large.send(test::post("/echo", std::string(11, 'x')));
        EXPECT_EQ(status_of(large.rest()), 413);
        Client wordy(server.port());
        wordy.send("PUT /a?secret HTTP/1.1\r\nX: " + std::string(4096, 'y') + "\r\n\r\n");
        EXPECT_EQ(status_of(wordy.rest()), 431);
    }
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_NE(log.find("method=POST path=/echo status=413"), std::string::npos) << log;
    EXPECT_NE(log.find("method=PUT path=/a status=431"), std::string::npos) << log;
}

// What memory that runs out looks like from here.
TEST(Connection, AFaultInsideOneConnectionLeavesTheOthers) {
    test::Gate gate;
    TestServer server({.threads = 1}, [&gate](Router& router) {
        router.add({.method = "GET",
                    .path = "/fragile",
                    .handler = [&gate](Request&&, const std::shared_ptr<ResponseWriter>& writer) {
                        writer->on_disconnect([] { throw std::bad_alloc(); });
                        gate.wait();
                    }});
    });
    Client other(server.port());
    {
        const Client leaves(server.port());
        leaves.send(test::get("/fragile"));
        gate.wait_for(1);
    }
    server.wait_answered();
    other.send(test::get("/now"));
    EXPECT_EQ(status_of(other.answer()), 200);
    gate.open();
}

TEST(Connection, ARefusedBodyIsReadAwaySoThatTheAnswerArrives) {
    const TestServer server({}, ask_for_a_word);
    Client client(server.port());
    client.send(test::post("/echo", std::string(8 << 20, 'x')));
    EXPECT_EQ(status_of(client.until("\r\n\r\n")), 401);
}

TEST(Connection, ARefusedRequestWithoutABodyKeepsTheConnection) {
    const TestServer server({}, ask_for_a_word);
    Client client(server.port());
    client.send(test::get("/nowhere") + test::get("/now"));
    EXPECT_EQ(status_of(client.answer()), 401);
    EXPECT_EQ(status_of(client.answer()), 200);
}

TEST(Connection, ContinueIsSentToThoseWhoMayGoOnAlone) {
    const TestServer server({}, ask_for_a_word);
    Client stranger(server.port());
    stranger.send(header("/echo", "Expect: 100-continue\r\nContent-Length: 5\r\n"));
    EXPECT_EQ(status_of(stranger.answer()), 401);
    EXPECT_EQ(stranger.rest(), "");
    Client known(server.port());
    known.send(header("/echo", "X-Word: y\r\nExpect: 100-continue\r\nContent-Length: 5\r\n"));
    EXPECT_EQ(known.until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    known.send("hello");
    EXPECT_TRUE(known.answer().ends_with("\r\n\r\nhello"));
    known.send(header("/echo", "X-Word: y\r\nExpect: 100-continue\r\nContent-Length: 0\r\n"));
    EXPECT_EQ(status_of(known.answer()), 200) << "there is nothing to go on with";
}

TEST(Connection, OneHostHeaderIsNeededAndOneAllowed) {
    const TestServer server;
    for (const auto& [hosts, status] :
         std::vector<std::pair<std::string, int>>{{"", 400},
                                                  {"Host: a\r\n", 200},
                                                  {"Host: a\r\nHost: a\r\n", 400},
                                                  {"Host: a\r\nhost: b\r\n", 400}}) {
        Client client(server.port());
        client.send("GET /now HTTP/1.1\r\n" + hosts + "\r\n");
        EXPECT_EQ(status_of(client.answer()), status) << hosts;
    }
}

// What says the length of a body in a way that not everybody reads alike ends the connection.
TEST(Connection, ATransferEncodingThatIsNotChunkedAloneIsRefusedAndNothingBehindItIsRead) {
    const TestServer server;
    const auto expect_closed = [&](const std::string& request) {
        Client client(server.port());
        client.send(request + test::get("/now"));
        const std::string all = client.rest();
        EXPECT_TRUE(status_of(all) == 501 || status_of(all) == 400) << request << all;
        EXPECT_EQ(all.find("HTTP/1.1 200"), std::string::npos) << request << all;
    };
    for (const std::string coding : {"xchunked", "gzip", "chunked, identity", "chunked, chunked",
                                     "\"chunked\"", "gzip, chunked", "", "identity"})
        expect_closed(header("/echo", "Transfer-Encoding: " + coding + "\r\n"));
    expect_closed(header("/echo", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"));
    expect_closed("POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
}

// They are kept until they are whole.
TEST(Connection, ExtensionsAndTrailersOfChunksAreNoLargerThanAHeaderMayBe) {
    const TestServer server({.max_header_bytes = 1024});
    const std::string much(1 << 20, 'x');
    std::string many;
    for (int count = 0; count < 20'000; ++count) many += "T: x\r\n";
    for (const std::string& chunks : {"2;" + much, "0\r\nT: " + much, "0\r\n" + many}) {
        Client client(server.port());
        client.send(header("/echo", "Transfer-Encoding: chunked\r\n") + chunks);
        EXPECT_EQ(status_of(client.until("\r\n\r\n")), 431);
    }
    Client client(server.port());
    client.send(header("/echo", "Transfer-Encoding: chunked\r\n") +
                "2;a=b\r\nhi\r\n0\r\nT: x\r\n\r\n");
    EXPECT_TRUE(client.answer().ends_with("\r\n\r\nhi"));
}

TEST(Connection, SmallBodiesPassWhereLargeOnesHaveTakenAllThereIs) {
    constexpr std::size_t kLarge = 200'000;
    test::Gate gate;
    const ServerOptions options{.max_body_bytes = kLarge, .max_bodies_bytes = kLarge};
    const TestServer server(options, [&gate](Router& router) {
        router.add({.method = "POST",
                    .path = "/hold",
                    .handler = [&gate](Request&&, const std::shared_ptr<ResponseWriter>& writer) {
                        gate.wait();
                        writer->send({.body = "held"});
                    }});
    });
    Client holder(server.port());
    holder.send(test::post("/hold", std::string(kLarge, 'x')));
    gate.wait_for(1);
    Client large(server.port());
    large.send(test::post("/echo", std::string(kLarge, 'y')));
    EXPECT_EQ(status_of(large.answer()), 503);
    Client small(server.port());
    small.send(test::post("/echo", "a question"));
    EXPECT_EQ(status_of(small.answer()), 200);
    gate.open();
    EXPECT_EQ(status_of(holder.answer()), 200);
}

TEST(Connection, HandlersOfLargeBodiesHoldUpNoSmallOnes) {
    test::Gate gate;
    const TestServer server({.handler_threads = 2}, [&gate](Router& router) {
        router.add({.method = "POST",
                    .path = "/hold",
                    .handler = [&gate](Request&&, const std::shared_ptr<ResponseWriter>& writer) {
                        gate.wait();
                        writer->send({.body = "held"});
                    }});
    });
    std::vector<std::unique_ptr<Client>> holders;
    for (int count = 0; count < 8; ++count) {
        holders.push_back(std::make_unique<Client>(server.port()));
        holders.back()->send(test::post("/hold", std::string(kSmallBodyBytes + 1, 'x')));
    }
    gate.wait_for(1);
    Client small(server.port());
    small.send(test::post("/echo", "a question"));
    EXPECT_EQ(status_of(small.answer()), 200);
    gate.open();
    for (const auto& holder : holders) EXPECT_EQ(status_of(holder->answer()), 200);
}

TEST(Connection, BodiesOfAllConnectionsShareABudget) {
    test::Gate gate;
    const ServerOptions options{.max_body_bytes = 1000, .max_small_bodies_bytes = 1500};
    const TestServer server(options, [&gate](Router& router) {
        router.add({.method = "POST",
                    .path = "/hold",
                    .handler = [&gate](Request&&, const std::shared_ptr<ResponseWriter>& writer) {
                        gate.wait();
                        writer->send({.body = "held"});
                    }});
    });
    Client holder(server.port());
    holder.send(test::post("/hold", std::string(900, 'x')));
    gate.wait_for(1);
    const std::string chunked =
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
        "\r\n2bc\r\n" +
        std::string(700, 'y') + "\r\n0\r\n\r\n";
    for (const std::string& request : {test::post("/echo", std::string(700, 'y')), chunked}) {
        Client late(server.port());
        late.send(request);
        const std::string answer = late.answer();
        EXPECT_EQ(status_of(answer), 503);
        EXPECT_EQ(error_member(answer, "code"), "server_overloaded");
        EXPECT_NE(answer.find("\r\nRetry-After: "), std::string::npos) << answer;
    }
    Client small(server.port());
    small.send(test::post("/echo", std::string(600, 'y')));
    EXPECT_EQ(status_of(small.answer()), 200);
    gate.open();
    EXPECT_TRUE(holder.answer().ends_with("held"));
    // A handler that has answered has not returned yet; then its share is given back.
    for (int status = 503; status != 200;) {
        Client client(server.port());
        client.send(test::post("/echo", std::string(1000, 'y')));
        status = status_of(client.answer());
    }
}

// A large answer takes longer than idle_timeout in all.
TEST(Connection, ASlowButSteadyReaderKeepsItsAnswer) {
    constexpr std::size_t kBytes = std::size_t{16} << 20;
    const TestServer server({.idle_timeout = milliseconds(150)}, [](Router& router) {
        router.add({.method = "GET",
                    .path = "/large",
                    .handler = [](Request&&, const std::shared_ptr<ResponseWriter>& writer) {
                        writer->send({.body = std::string(kBytes, 'z')});
                    }});
    });
    Client client(server.port(), 64 << 10);
    client.send("GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    const auto began = std::chrono::steady_clock::now();
    std::size_t bytes = 0;
    for (std::string piece; !(piece = client.some(256 << 10)).empty();) {
        bytes += piece.size();
        client.rest_for(milliseconds(5));
    }
    EXPECT_GT(bytes, kBytes) << "with the head";
    EXPECT_GT(std::chrono::steady_clock::now() - began, milliseconds(300));
}

TEST(Connection, AReaderThatTakesNothingLosesItsAnswer) {
    constexpr std::size_t kBytes = std::size_t{64} << 20;
    TestServer server({.idle_timeout = milliseconds(50)}, [](Router& router) {
        router.add({.method = "GET",
                    .path = "/large",
                    .handler = [](Request&&, const std::shared_ptr<ResponseWriter>& writer) {
                        writer->send({.body = std::string(kBytes, 'z')});
                    }});
    });
    Client client(server.port(), 64 << 10);
    client.send(test::get("/large"));
    EXPECT_EQ(client.some(1), "H");
    server.wait_answered();
    EXPECT_LT(client.rest().size(), kBytes);
}

}  // namespace
}  // namespace pagoda::http
