#include "loadgen/scripted_server_for_test.h"

#include <cstdlib>
#include <stdexcept>
#include <utility>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pagoda::loadgen::test {
namespace {

void require(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(what);
}

sockaddr* as_address(sockaddr_in& address) {
    return reinterpret_cast<sockaddr*>(&address);
}

// Head and body; what there was when the client closed.
std::string read_request(int connection) {
    std::string text;
    std::size_t whole = std::string::npos;
    while (text.size() < whole) {
        char bytes[4096];
        const ssize_t count = recv(connection, bytes, sizeof bytes, 0);
        if (count <= 0) return text;
        text.append(bytes, static_cast<std::size_t>(count));
        const std::size_t head = text.find("\r\n\r\n");
        if (head == std::string::npos) continue;
        constexpr std::string_view kLength = "Content-Length: ";
        const std::size_t length = text.find(kLength);
        whole = head + 4;
        if (length < head)
            whole += std::strtoull(text.c_str() + length + kLength.size(), nullptr, 10);
    }
    return text;
}

}  // namespace

ScriptedServer::ScriptedServer(Answer answer)
    : answer_(std::move(answer)), socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    require(bind(socket_, as_address(address), sizeof address) == 0, "no port");
    require(listen(socket_, SOMAXCONN) == 0, "no listening");
    acceptor_ = std::jthread([this] { accept(); });
}

ScriptedServer::~ScriptedServer() {
    shutdown(socket_, SHUT_RDWR);
    acceptor_.join();
    connections_.clear();
    close(socket_);
}

std::string ScriptedServer::url() const {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    require(getsockname(socket_, as_address(address), &size) == 0, "no name");
    return fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port));
}

void ScriptedServer::accept() {
    while (true) {
        const int connection = ::accept(socket_, nullptr, nullptr);
        if (connection < 0) return;
        const std::lock_guard lock(mutex_);
        connections_.emplace_back([this, connection] { serve(connection); });
    }
}

void ScriptedServer::serve(int connection) {
    const std::string request = read_request(connection);
    const std::string bytes = request.empty() ? std::string() : answer_(request);
    std::string_view left = bytes;
    while (!left.empty()) {
        const ssize_t count = send(connection, left.data(), left.size(), MSG_NOSIGNAL);
        if (count <= 0) break;
        left.remove_prefix(static_cast<std::size_t>(count));
    }
    close(connection);
}

std::string with_head(int status, std::string_view body) {
    return fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                       body.size(), body);
}

std::string streamed(int num_pieces) {
    std::string body = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n";
    for (int i = 0; i < num_pieces; ++i)
        body += "data: {\"choices\":[{\"delta\":{\"content\":\" a\"}}]}\n\n";
    body += fmt::format(
        "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":9,\"completion_tokens\":{},"
        "\"prompt_tokens_details\":{{\"cached_tokens\":3}}}}}}\n\ndata: [DONE]\n\n",
        num_pieces);
    return with_head(200, body);
}

}  // namespace pagoda::loadgen::test
