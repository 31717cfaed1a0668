#include "serve/api/answer_thread.h"

#include <exception>
#include <utility>

#include <fmt/core.h>

#include "base/thread.h"

namespace pagoda::api {

AnswerThread::~AnswerThread() {
    work_.close();
    if (thread_.joinable()) thread_.join();
}

base::Status AnswerThread::start() {
    auto thread = base::start_thread("pagoda-answers", [this] { run(); });
    if (!thread) return std::move(thread).error();
    thread_ = std::move(thread).value();
    return {};
}

void AnswerThread::post(std::function<void()> work) {
    // Closed only when nobody is left to post.
    static_cast<void>(work_.try_push(std::move(work)));
}

void AnswerThread::run() {
    while (auto work = work_.pop()) {
        try {
            (*work)();
        } catch (const std::exception& fault) {
            logger_.error(fmt::format("an answer could not be written: {}", fault.what()));
        }
    }
}

}  // namespace pagoda::api
