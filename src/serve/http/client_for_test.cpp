#include "serve/http/client_for_test.h"

#include <charconv>
#include <stdexcept>
#include <utility>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace pagoda::http::test {
namespace {

// Not an assertion: fixtures are linked without a test framework.
void require(bool holds, const char* what) {
    if (!holds) throw std::runtime_error(what);
}

}  // namespace

TestServer::TestServer(ServerOptions options, const AddRoutes& add_routes, base::LogLevel level)
    : logger_({.level = level}) {
    options.port = 0;
    options.on_answered = [this] {
        const std::lock_guard lock(mutex_);
        answered_.notify_all();
    };
    router_.add({.method = "POST",
                 .path = "/echo",
                 .handler = [](Request&& request, const std::shared_ptr<ResponseWriter>& writer) {
                     writer->send({.body = request.body});
                 }});
    router_.add({.method = "GET",
                 .path = "/now",
                 .handler =
                     [](Request&&, const std::shared_ptr<ResponseWriter>& writer) {
                         writer->send({.body = "now"});
                     },
                 .access = Access::kPublic,
                 .is_immediate = true,
                 .is_quiet = true});
    if (add_routes) add_routes(router_);
    server_ = std::make_unique<Server>(options, router_, logger_);
    const auto started = server_->start();
    require(started.ok(), "the server did not start");
}

void TestServer::wait_answered() {
    std::unique_lock lock(mutex_);
    answered_.wait(lock, [this] { return server_->num_pending() == 0; });
}

void Gate::open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
}

void Gate::wait() {
    std::unique_lock lock(mutex_);
    ++num_waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_open_; });
}

void Gate::wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, count] { return num_waiting_ >= count; });
}

Client::Client(std::uint16_t port, int receive_buffer) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0)
        setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    require(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0,
            "the server can't be reached");
}

Client::~Client() {
    close(socket_);
}

void Client::send(std::string_view bytes) const {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        require(sent > 0, "the server takes nothing more");
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
}

void Client::send_until_answered(std::string_view bytes) const {
    constexpr int kMostPieces = 2000;
    pollfd readable{.fd = socket_, .events = POLLIN, .revents = 0};
    for (int piece = 0; piece < kMostPieces && poll(&readable, 1, 5) == 0; ++piece) send(bytes);
    require((readable.revents & POLLIN) != 0, "no answer");
}

std::string Client::some(std::size_t most) const {
    std::string text(most, '\0');
    const ssize_t got = read(socket_, text.data(), text.size());
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
}

std::string Client::until(std::string_view text) {
    while (true) {
        if (const std::size_t at = kept_.find(text); at != std::string::npos) {
            std::string result = kept_.substr(0, at + text.size());
            kept_.erase(0, at + text.size());
            return result;
        }
        const std::string more = some();
        if (more.empty()) return std::exchange(kept_, {});
        kept_ += more;
    }
}

std::string Client::rest() {
    std::string text = std::exchange(kept_, {});
    while (true) {
        const std::string more = some();
        if (more.empty()) return text;
        text += more;
    }
}

std::string Client::answer() {
    constexpr std::string_view kLength = "Content-Length: ";
    std::string text = until("\r\n\r\n");
    std::size_t length = 0;
    if (const std::size_t at = text.find(kLength); at != std::string::npos)
        std::from_chars(text.data() + at + kLength.size(), text.data() + text.size(), length);
    while (kept_.size() < length) {
        const std::string more = some();
        if (more.empty()) break;
        kept_ += more;
    }
    text += kept_.substr(0, length);
    kept_.erase(0, length);
    return text;
}

void Client::close_sending() const {
    shutdown(socket_, SHUT_WR);
}

void Client::rest_for(std::chrono::milliseconds time) const {
    pollfd nothing{.fd = socket_, .events = 0, .revents = 0};
    poll(&nothing, 1, static_cast<int>(time.count()));
}

std::string get(std::string_view path) {
    return fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", path);
}

std::string post(std::string_view path, std::string_view body, std::string_view more_headers) {
    return fmt::format("POST {} HTTP/1.1\r\nHost: x\r\n{}Content-Length: {}\r\n\r\n{}", path,
                       more_headers, body.size(), body);
}

int status_of(std::string_view answer) {
    constexpr std::string_view kVersion = "HTTP/1.1 ";
    int status = 0;
    if (answer.starts_with(kVersion))
        std::from_chars(answer.data() + kVersion.size(), answer.data() + answer.size(), status);
    return status;
}

std::string error_member(std::string_view answer, std::string_view member) {
    const std::size_t end = answer.find("\r\n\r\n");
    if (end == std::string_view::npos) return "";
    const auto body = base::Json::parse(answer.substr(end + 4));
    if (!body) return "";
    const base::Json* error = body->find("error");
    const base::Json* found = error == nullptr ? nullptr : error->find(member);
    return found != nullptr && found->is_string() ? found->as_string() : "";
}

}  // namespace pagoda::http::test
