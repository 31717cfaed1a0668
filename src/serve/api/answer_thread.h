#pragma once
// AnswerThread: where answers are written that take long to write, those with log-probabilities: a
// prompt's can be hundreds of thousands. On the engine's output thread they would hold up every
// other stream; here they wait for each other alone. Any thread may post. It outlives the engine,
// whose last events still come here.

#include <functional>
#include <thread>

#include "base/log.h"
#include "base/queue.h"
#include "base/result.h"

namespace pagoda::api {

class AnswerThread final {
  public:
    // The logger outlives it.
    explicit AnswerThread(base::Logger& logger) : logger_(logger) {}
    // Does what was posted and joins.
    ~AnswerThread();
    AnswerThread(const AnswerThread&) = delete;
    AnswerThread& operator=(const AnswerThread&) = delete;

    // Once, before anything else. Fails when the system allows no more threads.
    [[nodiscard]] base::Status start();
    // In the order of the calls. What it throws is logged.
    void post(std::function<void()> work);

  private:
    void run();

    base::Logger& logger_;
    base::BlockingQueue<std::function<void()>> work_;
    std::thread thread_;
};

}  // namespace pagoda::api
