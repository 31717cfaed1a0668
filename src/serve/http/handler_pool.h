#pragma once
// HandlerPool: the threads that handlers run on, so that one that takes seconds holds up neither
// connections nor the streams of others. What waits for a thread is limited in number here and in
// bytes by the BodyBudget. run() and try_push() are for any thread, start() and stop() for one.

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/queue.h"
#include "base/result.h"
#include "serve/http/body_budget.h"
#include "serve/http/router.h"

namespace pagoda::http {

class Exchange;

// One request and who handles it.
struct HandlerCall {
    const Route* route = nullptr;  // outlives the server
    Request request;
    BodyBudget::Share share;  // of the body; held until the handler has returned
    std::shared_ptr<Exchange> exchange;
};

class HandlerPool {
  public:
    HandlerPool(int num_threads, std::size_t max_waiting, base::Logger& logger);
    ~HandlerPool();
    HandlerPool(const HandlerPool&) = delete;
    HandlerPool& operator=(const HandlerPool&) = delete;

    // Fails when the system allows no more threads.
    [[nodiscard]] base::Status start();
    // Calls that wait are dropped, and no more are taken.
    void close();
    // That, and waits for the handlers that run.
    void stop();

    // False when too many wait; the call is then untouched.
    [[nodiscard]] bool try_push(HandlerCall&& call) { return calls_.try_push(std::move(call)); }
    // On this thread. Nothing a handler throws leaves it: the request fails alone.
    void run(HandlerCall&& call);

  private:
    const int num_threads_;
    base::Logger& logger_;
    base::BlockingQueue<HandlerCall> calls_;
    std::vector<std::thread> threads_;
};

}  // namespace pagoda::http
