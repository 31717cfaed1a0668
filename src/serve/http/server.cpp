#include "serve/http/server.h"

#include <algorithm>
#include <thread>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <fmt/core.h>

#include "serve/http/connection.h"

namespace pagoda::http {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;

struct Server::Impl {
    Impl(const ServerOptions& server_options, const Router& router, base::Logger& logger)
        : options(server_options),
          state{.options = options, .router = router, .logger = logger},
          context(options.threads),
          acceptor(asio::make_strand(context)) {
        state.handlers = context.get_executor();
    }

    base::Status bind();
    void accept();
    void on_accepted(const boost::system::error_code& error, Tcp::socket&& socket);
    void close_connections(bool at_once);

    const ServerOptions options;
    ServerState state;  // outlives the connections, the last of which go with the context
    asio::io_context context;
    Tcp::acceptor acceptor;
    std::vector<std::weak_ptr<Connection>> connections;  // the acceptor's strand
    std::vector<std::thread> threads;
};

base::Status Server::Impl::bind() {
    const auto failure = [this](const boost::system::error_code& error) {
        return base::Error{base::ErrorCode::kIo,
                           fmt::format("can't listen on {} port {}: {}", options.host, options.port,
                                       error.message()),
                           "port"};
    };
    boost::system::error_code error;
    Tcp::resolver resolver(context);
    const auto found =
        resolver.resolve(options.host, std::to_string(options.port), Tcp::resolver::passive, error);
    if (error || found.empty()) return failure(error);
    const Tcp::endpoint endpoint = *found.begin();
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error) return failure(error);
    return {};
}

void Server::Impl::accept() {
    acceptor.async_accept(asio::make_strand(context),
                          [this](const boost::system::error_code& error, Tcp::socket socket) {
                              on_accepted(error, std::move(socket));
                          });
}

void Server::Impl::on_accepted(const boost::system::error_code& error, Tcp::socket&& socket) {
    if (!acceptor.is_open()) return;
    if (!error && state.num_connections.load() < options.max_connections) {
        boost::system::error_code ignored;
        socket.set_option(Tcp::no_delay(true), ignored);
        auto connection = std::make_shared<Connection>(std::move(socket), state);
        std::erase_if(connections, [](const auto& entry) { return entry.expired(); });
        connections.push_back(connection);
        connection->start();
    } else if (!error) {
        state.logger.warning(fmt::format("a connection was refused: {} are open, the most allowed",
                                         options.max_connections));
    }
    accept();
}

// On the acceptor's strand, so that no connection slips in between.
void Server::Impl::close_connections(bool at_once) {
    state.stopping.store(true);
    asio::post(acceptor.get_executor(), [this, at_once] {
        boost::system::error_code ignored;
        acceptor.close(ignored);
        for (const auto& entry : connections) {
            if (const auto connection = entry.lock()) connection->stop(at_once);
        }
    });
}

Server::Server(const ServerOptions& options, const Router& router, base::Logger& logger)
    : impl_(std::make_unique<Impl>(options, router, logger)) {}

Server::~Server() {
    stop();
}

base::Status Server::start() {
    if (auto bound = impl_->bind(); !bound) return bound;
    impl_->accept();
    for (int number = 0; number < std::max(1, impl_->options.threads); ++number)
        impl_->threads.emplace_back([this] { impl_->context.run(); });
    return {};
}

std::uint16_t Server::port() const {
    boost::system::error_code error;
    return impl_->acceptor.local_endpoint(error).port();
}

std::size_t Server::num_pending() const {
    return impl_->state.num_pending.load();
}

void Server::stop_accepting() {
    impl_->close_connections(/*at_once=*/false);
}

void Server::stop() {
    if (impl_->threads.empty()) return;
    impl_->close_connections(/*at_once=*/true);
    // Nothing is left to run once all connections are closed.
    for (std::thread& thread : impl_->threads) thread.join();
    impl_->threads.clear();
}

}  // namespace pagoda::http
