#pragma once
// Listener: the listening sockets of a server, one for each address of its host. Accepted sockets
// and everything that happens after listen() come on its strand. Internal to the server.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>

#include "base/log.h"
#include "base/result.h"

namespace pagoda::http {

class Listener {
  public:
    using Tcp = boost::asio::ip::tcp;
    using OnSocket = std::function<void(Tcp::socket&& socket)>;

    // The context and the logger outlive it.
    Listener(boost::asio::io_context& context, base::Logger& logger, OnSocket on_socket);

    // Binds every address of the host; those of a family that this machine lacks are left out with
    // a line. Port 0 takes one that is free on all of them. Errors name address, port and reason.
    [[nodiscard]] base::Status listen(const std::string& host, std::uint16_t port);
    // Begins to accept. REQUIRES: listen() succeeded.
    void accept();
    // On the strand. Nothing is accepted any more.
    void close();

    // The port that is bound.
    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] auto executor() const { return strand_; }

  private:
    using Error = boost::system::error_code;

    [[nodiscard]] base::Status bind_all(const Tcp::resolver::results_type& found,
                                        std::uint16_t port);
    [[nodiscard]] Error bind(const Tcp::endpoint& endpoint, bool is_one_of_many);
    void accept_next(Tcp::acceptor& acceptor);
    void on_accepted(Tcp::acceptor& acceptor, const Error& error, Tcp::socket&& socket);
    void pause(boost::asio::ip::tcp::acceptor& acceptor, const std::string& shortage);
    void wait_for_resources();

    boost::asio::io_context& context_;
    base::Logger& logger_;
    const OnSocket on_socket_;
    boost::asio::strand<boost::asio::io_context::executor_type> strand_;
    // On the strand once accept() was called.
    std::vector<Tcp::acceptor> acceptors_;
    boost::asio::steady_timer again_;  // after an accept that the system had no means for
    std::vector<Tcp::acceptor*> paused_;
    bool is_short_ = false;  // of descriptors or memory; said once
};

}  // namespace pagoda::http
