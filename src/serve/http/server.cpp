#include "serve/http/server.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <fmt/core.h>

#include "base/thread.h"
#include "serve/http/connection.h"
#include "serve/http/descriptor_limit.h"
#include "serve/http/listener.h"

namespace pagoda::http {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;

struct Server::Impl {
    Impl(const ServerOptions& server_options, const Router& router, base::Logger& logger);

    void limit_connections();
    void on_socket(Tcp::socket&& socket);
    void turn_away(Tcp::socket& socket);
    void close_connections();
    void run();

    const ServerOptions options;
    std::size_t max_connections;  // constant once started
    HandlerPool pool;
    HandlerPool large_pool;
    BodyBudget bodies;
    ServerState state;  // outlives the connections, the last of which go with the context
    asio::io_context context;
    Listener listener;
    std::vector<std::weak_ptr<Connection>> connections;  // the listener's strand
    bool is_full = false;                                // the listener's strand; said once
    std::vector<std::thread> threads;
};

Server::Impl::Impl(const ServerOptions& server_options, const Router& router, base::Logger& logger)
    : options(server_options),
      max_connections(options.max_connections),
      pool(std::max(1, options.handler_threads), options.max_waiting_handlers, logger),
      large_pool(std::max(1, options.handler_threads / 2), options.max_waiting_handlers, logger),
      bodies(options.max_small_bodies_bytes,
             std::max(options.max_bodies_bytes, options.max_body_bytes)),
      state{.options = options,
            .router = router,
            .logger = logger,
            .pool = pool,
            .large_pool = large_pool,
            .bodies = bodies},
      context(std::max(1, options.threads)),
      listener(context, logger, [this](Tcp::socket&& socket) { on_socket(std::move(socket)); }) {}

void Server::Impl::limit_connections() {
    max_connections = connections_allowed(options.max_connections);
    if (max_connections < options.max_connections)
        state.logger.warning(
            fmt::format("the limit of open files allows {} connections instead of {}; raise it "
                        "(ulimit -n) for more",
                        max_connections, options.max_connections));
}

void Server::Impl::on_socket(Tcp::socket&& socket) {
    if (state.num_connections.load() >= max_connections) {
        turn_away(socket);
        return;
    }
    is_full = false;
    boost::system::error_code ignored;
    socket.set_option(Tcp::no_delay(true), ignored);
    auto connection = std::make_shared<Connection>(std::move(socket), state);
    std::erase_if(connections, [](const auto& entry) { return entry.expired(); });
    connections.push_back(connection);
    connection->start();
}

// Told why as far as that goes without waiting: its request is not read.
void Server::Impl::turn_away(Tcp::socket& socket) {
    if (!std::exchange(is_full, true))
        state.logger.warning(fmt::format(
            "connections are turned away: {} are open, the most allowed", max_connections));
    const Response response = error_response(
        {.status = 503,
         .message =
             fmt::format("{} connections are open, the most allowed; try again", max_connections),
         .code = "server_overloaded"});
    const std::string bytes =
        answer_head(response,
                    {.request_id = state.ids.next(), .keep_alive = false, .can_chunk = true},
                    AnswerKind::kWhole) +
        response.body;
    boost::system::error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(bytes), ignored);
    socket.shutdown(Tcp::socket::shutdown_send, ignored);
}

// On the listener's strand, so that no connection slips in between.
void Server::Impl::close_connections() {
    asio::post(listener.executor(), [this] {
        listener.close();
        for (const auto& entry : connections) {
            if (const auto connection = entry.lock()) connection->stop();
        }
    });
}

// A thread of the connections. They catch what their own work throws; what is left came of a
// completion that could not even be called, and must not end the others.
void Server::Impl::run() {
    for (bool is_over = false; !is_over;) {
        try {
            context.run();
            is_over = true;
        } catch (const std::exception& fault) {
            state.logger.error(fmt::format("an HTTP thread goes on after: {}", fault.what()));
        }
    }
}

Server::Server(const ServerOptions& options, const Router& router, base::Logger& logger)
    : impl_(std::make_unique<Impl>(options, router, logger)) {}

Server::~Server() {
    stop();
}

base::Status Server::start() {
    if (auto bound = impl_->listener.listen(impl_->options.host, impl_->options.port); !bound)
        return bound;
    impl_->limit_connections();
    for (HandlerPool* pool : {&impl_->pool, &impl_->large_pool}) {
        if (auto started = pool->start(); !started) return started;
    }
    impl_->listener.accept();
    for (int number = 0; number < std::max(1, impl_->options.threads); ++number) {
        auto thread = base::start_thread("http", [impl = impl_.get()] { impl->run(); });
        if (!thread) {
            stop();
            return std::move(thread).error();
        }
        impl_->threads.push_back(std::move(thread).value());
    }
    return {};
}

std::uint16_t Server::port() const {
    return impl_->listener.port();
}

std::size_t Server::num_pending() const {
    return impl_->state.num_pending.load();
}

void Server::stop() {
    impl_->state.is_stopping.store(true);
    // First of all: a handler that ends because its reader is closed must not begin the next.
    impl_->pool.close();
    impl_->large_pool.close();
    if (!impl_->threads.empty()) impl_->close_connections();
    impl_->pool.stop();
    impl_->large_pool.stop();
    // Nothing is left to run once all connections are closed.
    for (std::thread& thread : impl_->threads) thread.join();
    impl_->threads.clear();
}

}  // namespace pagoda::http
