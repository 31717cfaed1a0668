#include "serve/http/server.h"

#include <array>
#include <optional>
#include <string>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pagoda::http {
namespace {

using std::chrono::milliseconds;

// A server that answers POST /echo with the body.
class EchoServer {
  public:
    explicit EchoServer(ServerOptions options) {
        options.port = 0;
        router_.add({.method = "POST",
                     .path = "/echo",
                     .handler = [](Request&& request, std::shared_ptr<ResponseWriter> writer) {
                         writer->send({.body = request.body});
                     }});
        server_.emplace(options, router_, logger_);
        EXPECT_TRUE(server_->start().ok());
    }
    [[nodiscard]] std::uint16_t port() const { return server_->port(); }

  private:
    base::Logger logger_{{.level = base::LogLevel::kError}};
    Router router_;
    std::optional<Server> server_;
};

class Client {
  public:
    explicit Client(std::uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port)};
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    }
    ~Client() { close(socket_); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    void send(std::string_view bytes) const {
        EXPECT_EQ(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
    }
    // Every few milliseconds, until the server says something.
    void send_until_answered(std::string_view bytes) const {
        constexpr int kMostPieces = 2000;
        pollfd readable{.fd = socket_, .events = POLLIN, .revents = 0};
        for (int piece = 0; piece < kMostPieces && poll(&readable, 1, 5) == 0; ++piece) send(bytes);
        EXPECT_NE(readable.revents & POLLIN, 0) << "no answer";
    }
    // All that comes until the server closes its side.
    [[nodiscard]] std::string rest() const {
        std::string text;
        std::array<char, 4096> piece{};
        while (true) {
            const ssize_t got = read(socket_, piece.data(), piece.size());
            if (got <= 0) return text;
            text.append(piece.data(), static_cast<std::size_t>(got));
        }
    }

  private:
    int socket_;
};

ServerOptions impatient() {
    return {.header_timeout = milliseconds(100), .idle_timeout = milliseconds(200)};
}

constexpr std::string_view kHead = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n";

void expect_late(const std::string& answer, std::string_view part, std::string_view limit) {
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n")) << answer;
    EXPECT_NE(answer.find("\r\nConnection: close\r\n"), std::string::npos) << answer;
    const std::size_t end = answer.find("\r\n\r\n");
    ASSERT_NE(end, std::string::npos);
    const auto body = base::Json::parse(std::string_view(answer).substr(end + 4));
    ASSERT_TRUE(body.ok()) << answer;
    const base::Json* error = body->find("error");
    ASSERT_NE(error, nullptr) << answer;
    EXPECT_EQ(error->find("code")->as_string(), "request_timeout");
    const std::string& message = error->find("message")->as_string();
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_NE(message.find(limit), std::string::npos) << message;
}

TEST(Server, AHeaderThatDoesNotEndInTimeIsAnsweredWith408) {
    const EchoServer server(impatient());
    for (const std::string_view begun : {kHead, kHead.substr(0, 3)}) {
        const Client client(server.port());
        client.send(begun);
        expect_late(client.rest(), "header did not come within 0.1 s", "header_timeout");
    }
}

TEST(Server, ABodyThatDoesNotEndInTimeIsAnsweredWith408) {
    const EchoServer server(impatient());
    for (const std::string_view begun : {"", "1234"}) {
        const Client client(server.port());
        client.send(std::string(kHead) + "\r\n" + std::string(begun));
        expect_late(client.rest(), "body did not come within 0.2 s", "idle_timeout");
    }
}

// A piece now and then keeps nothing open: the limits are of the whole header and the whole body.
TEST(Server, SlowPiecesDoNotPutTheDeadlineOff) {
    const EchoServer server(impatient());
    const Client header(server.port());
    header.send("POST /echo HTTP/1.1\r\n");
    header.send_until_answered("X: y\r\n");
    expect_late(header.rest(), "header", "header_timeout");
    const Client body(server.port());
    body.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    body.send_until_answered("x");
    expect_late(body.rest(), "body", "idle_timeout");
}

TEST(Server, ASilentConnectionClosesWithoutAnAnswer) {
    const EchoServer server(impatient());
    const Client fresh(server.port());
    EXPECT_EQ(fresh.rest(), "");
    const Client used(server.port());
    used.send(std::string(kHead) + "\r\nhello");
    const std::string answer = used.rest();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
    EXPECT_TRUE(answer.ends_with("\r\n\r\nhello")) << answer;
}

TEST(Server, TheSecondRequestOfAConnectionIsAnsweredWhenItIsLate) {
    const EchoServer server(impatient());
    const Client client(server.port());
    client.send(std::string(kHead) + "\r\nhello" + std::string(kHead));
    const std::string answers = client.rest();
    const std::size_t second = answers.find("helloHTTP/1.1");
    ASSERT_NE(second, std::string::npos) << answers;
    expect_late(answers.substr(second + 5), "header", "header_timeout");
}

}  // namespace
}  // namespace pagoda::http
