#include "serve/http/listener.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include <boost/asio/ip/v6_only.hpp>
#include <fmt/core.h>

namespace pagoda::http {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;

constexpr std::chrono::milliseconds kAcceptAgain{100};

std::string text_of(const Tcp::endpoint& endpoint) {
    return endpoint.address().is_v6()
               ? fmt::format("[{}]:{}", endpoint.address().to_string(), endpoint.port())
               : fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
}

base::Error no_listening(std::string_view place, const boost::system::error_code& error) {
    return {base::ErrorCode::kIo, fmt::format("can't listen on {}: {}", place, error.message()),
            "port"};
}

// The machine has no such addresses: IPv6 is off, or a name leads to another machine too.
bool is_not_of_this_machine(const boost::system::error_code& error) {
    namespace errc = boost::system::errc;
    return error == errc::address_family_not_supported || error == errc::address_not_available ||
           error == errc::protocol_not_supported;
}

}  // namespace

Listener::Listener(asio::io_context& context, base::Logger& logger, OnSocket on_socket)
    : context_(context),
      logger_(logger),
      on_socket_(std::move(on_socket)),
      strand_(asio::make_strand(context)),
      again_(strand_) {}

base::Status Listener::listen(const std::string& host, std::uint16_t port) {
    // A port that is free on one address may be taken on the next.
    constexpr int kMostTries = 16;
    Error error;
    Tcp::resolver resolver(context_);
    const auto found = resolver.resolve(host, std::to_string(port), Tcp::resolver::passive, error);
    if (error) return no_listening(fmt::format("{} port {}", host, port), error);
    base::Status status;
    for (int number = 0; number < kMostTries; ++number) {
        status = bind_all(found, port);
        if (status || port != 0) break;
        acceptors_.clear();
    }
    if (!status) acceptors_.clear();
    return status;
}

base::Status Listener::bind_all(const Tcp::resolver::results_type& found, std::uint16_t port) {
    Error missing;
    for (const auto& entry : found) {
        const Tcp::endpoint endpoint(entry.endpoint().address(),
                                     acceptors_.empty() ? port : this->port());
        // A name may stand twice in a table of hosts.
        const bool is_bound = std::any_of(acceptors_.begin(), acceptors_.end(),
                                          [&endpoint](const Tcp::acceptor& acceptor) {
                                              Error ignored;
                                              return acceptor.local_endpoint(ignored) == endpoint;
                                          });
        if (is_bound) continue;
        const Error error = bind(endpoint, found.size() > 1);
        if (!error) continue;
        if (!is_not_of_this_machine(error) || found.size() == 1)
            return no_listening(text_of(endpoint), error);
        missing = error;
        logger_.warning(fmt::format("{} is left out: {}", text_of(endpoint), error.message()));
    }
    if (acceptors_.empty())
        return no_listening(fmt::format("any address of {}", found.begin()->host_name()), missing);
    return {};
}

Listener::Error Listener::bind(const Tcp::endpoint& endpoint, bool is_one_of_many) {
    Error error;
    Tcp::acceptor acceptor(strand_);
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    // Else an address of IPv6 would take those of IPv4 too, which have a socket of their own.
    if (!error && is_one_of_many && endpoint.address().is_v6())
        acceptor.set_option(asio::ip::v6_only(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error) acceptors_.push_back(std::move(acceptor));
    return error;
}

std::uint16_t Listener::port() const {
    if (acceptors_.empty()) return 0;
    Error ignored;
    return acceptors_.front().local_endpoint(ignored).port();
}

void Listener::accept() {
    for (Tcp::acceptor& acceptor : acceptors_) accept_next(acceptor);
}

void Listener::accept_next(Tcp::acceptor& acceptor) {
    acceptor.async_accept(asio::make_strand(context_),
                          [this, &acceptor](const Error& error, Tcp::socket socket) {
                              on_accepted(acceptor, error, std::move(socket));
                          });
}

void Listener::on_accepted(Tcp::acceptor& acceptor, const Error& error, Tcp::socket&& socket) {
    if (!acceptor.is_open()) return;
    if (error == asio::error::connection_aborted) return accept_next(acceptor);
    std::string shortage = error ? error.message() : std::string();
    try {
        if (!error) on_socket_(std::move(socket));
    } catch (const std::exception& fault) {
        shortage = fault.what();
    }
    if (!shortage.empty()) return pause(acceptor, shortage);
    if (std::exchange(is_short_, false)) logger_.warning("connections are accepted again");
    accept_next(acceptor);
}

// No descriptors, no memory: asking again at once would only burn a core.
void Listener::pause(Tcp::acceptor& acceptor, const std::string& shortage) {
    if (!std::exchange(is_short_, true))
        logger_.warning(fmt::format("connections can't be accepted: {}; new ones wait", shortage));
    paused_.push_back(&acceptor);
    if (paused_.size() == 1) wait_for_resources();
}

void Listener::wait_for_resources() {
    again_.expires_after(kAcceptAgain);
    again_.async_wait([this](const Error& error) {
        if (error) return;
        for (Tcp::acceptor* acceptor : std::exchange(paused_, {})) {
            if (acceptor->is_open()) accept_next(*acceptor);
        }
    });
}

void Listener::close() {
    Error ignored;
    for (Tcp::acceptor& acceptor : acceptors_) acceptor.close(ignored);
    again_.cancel();
}

}  // namespace pagoda::http
