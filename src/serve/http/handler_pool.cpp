#include "serve/http/handler_pool.h"

#include <exception>
#include <utility>

#include <fmt/core.h>

#include "base/thread.h"
#include "serve/http/exchange.h"

namespace pagoda::http {

HandlerPool::HandlerPool(int num_threads, std::size_t max_waiting, base::Logger& logger)
    : num_threads_(num_threads), logger_(logger), calls_(max_waiting) {}

HandlerPool::~HandlerPool() {
    stop();
}

base::Status HandlerPool::start() {
    for (int number = 0; number < num_threads_; ++number) {
        auto thread = base::start_thread("http-handler", [this] {
            while (auto call = calls_.pop()) run(std::move(*call));
        });
        if (!thread) return std::move(thread).error();
        threads_.push_back(std::move(thread).value());
    }
    return {};
}

void HandlerPool::close() {
    calls_.close();
    static_cast<void>(calls_.drain());
}

void HandlerPool::stop() {
    close();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
}

void HandlerPool::run(HandlerCall&& call) {
    HandlerCall own = std::move(call);
    const std::shared_ptr<Exchange> exchange = std::move(own.exchange);
    try {
        own.route->handler(std::move(own.request), exchange);
    } catch (const std::exception& fault) {
        logger_.error(
            fmt::format("{}: a handler failed: {}", exchange->request_id(), fault.what()));
        exchange->fail();
    }
}

}  // namespace pagoda::http
