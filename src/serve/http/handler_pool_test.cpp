#include "serve/http/handler_pool.h"

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

// GET /blocked waits at the gate; GET /stream begins a stream that says nothing.
TestServer::AddRoutes blocked_at(test::Gate& gate) {
    return [&gate](Router& router) {
        router.add({.method = "GET",
                    .path = "/blocked",
                    .handler = [&gate](Request&&, const Writer& writer) {
                        gate.wait();
                        writer->send({.body = "unblocked"});
                    }});
        router.add({.method = "GET",
                    .path = "/stream",
                    .handler = [](Request&&, const Writer& writer) { writer->begin_stream({}); },
                    .is_immediate = true});
    };
}

TEST(HandlerPool, BlockedHandlersHoldUpNeitherImmediateRoutesNorStreams) {
    test::Gate gate;
    const TestServer server({.threads = 1, .handler_threads = 2, .heartbeat = milliseconds(5)},
                            blocked_at(gate));
    Client first(server.port());
    Client second(server.port());
    Client third(server.port());
    for (const Client* client : {&first, &second, &third}) client->send(test::get("/blocked"));
    gate.wait_for(2);
    Client stream(server.port());
    stream.send(test::get("/stream"));
    for (int beat = 0; beat < 3; ++beat)
        EXPECT_TRUE(stream.until(": heartbeat\n\n").ends_with(": heartbeat\n\n"));
    Client now(server.port());
    now.send(test::get("/now"));
    EXPECT_EQ(status_of(now.answer()), 200);
    gate.open();
    for (Client* client : {&first, &second, &third})
        EXPECT_TRUE(client->answer().ends_with("unblocked"));
}

TEST(HandlerPool, RequestsBeyondThoseThatMayWaitAreAnsweredWith503) {
    test::Gate gate;
    const TestServer server({.handler_threads = 1, .max_waiting_handlers = 1}, blocked_at(gate));
    Client running(server.port());
    running.send(test::get("/blocked"));
    gate.wait_for(1);
    // One of the two finds the only place to wait.
    Client one(server.port());
    Client other(server.port());
    one.send(test::get("/blocked"));
    other.send(test::get("/blocked"));
    Client now(server.port());
    now.send(test::get("/now"));
    EXPECT_EQ(status_of(now.answer()), 200);
    gate.open();
    const std::string answers = one.answer() + other.answer();
    EXPECT_NE(answers.find("HTTP/1.1 200 OK"), std::string::npos) << answers;
    const std::size_t refused = answers.find("HTTP/1.1 503 Service Unavailable");
    ASSERT_NE(refused, std::string::npos) << answers;
    EXPECT_NE(answers.find("1 requests wait for a thread", refused), std::string::npos);
    EXPECT_TRUE(running.answer().ends_with("unblocked"));
}

TEST(HandlerPool, StoppingDropsWhatWaitsAndEndsWithTheHandlerThatRuns) {
    test::Gate gate;
    TestServer server({.handler_threads = 1}, [&](Router& router) {
        router.add({.method = "GET",
                    .path = "/blocked",
                    .handler = [&gate](Request&&, const Writer& writer) {
                        // The server's stop ends the connection first, and with it the wait.
                        writer->on_disconnect([&gate] { gate.open(); });
                        gate.wait();
                        writer->send({.body = "too late"});
                    }});
    });
    Client running(server.port());
    running.send(test::get("/blocked"));
    gate.wait_for(1);
    Client waiting(server.port());
    waiting.send(test::get("/blocked"));
    server.stop();
    EXPECT_EQ(running.rest(), "");
    EXPECT_EQ(waiting.rest(), "");
    EXPECT_EQ(server.num_pending(), 0U);
}

}  // namespace
}  // namespace pagoda::http
