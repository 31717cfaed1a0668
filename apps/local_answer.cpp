#include "local_answer.h"

#include <cstdio>
#include <mutex>
#include <utility>

#include <unistd.h>

#include "base/terminal_text.h"
#include "signal_watch.h"

namespace pagoda::apps {
namespace {

template <class T>
void append(std::vector<T>& to, std::vector<T>& from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// What ends a request early: a signal may come before the request has its id.
class Cancellation {
  public:
    explicit Cancellation(engine::Engine& engine) : engine_(engine) {}

    void ask() {
        const std::lock_guard lock(mutex_);
        is_asked_ = true;
        if (request_) engine_.cancel(*request_);
    }
    void submitted(base::RequestId request) {
        const std::lock_guard lock(mutex_);
        request_ = request;
        if (is_asked_) engine_.cancel(request);
    }

  private:
    engine::Engine& engine_;  // outlives the answer
    std::mutex mutex_;
    // Guarded by mutex_:
    bool is_asked_ = false;
    std::optional<base::RequestId> request_;
};

}  // namespace

bool print_piece(const std::string& piece) {
    // What a model makes up must not steer the terminal that shows it; a pipe gets every byte.
    const bool is_terminal = isatty(STDOUT_FILENO) == 1;
    const std::string text = is_terminal ? base::terminal_text(piece) : piece;
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
           std::fflush(stdout) == 0;
}

base::Result<Answer> answer(engine::Engine& engine, engine::GenerateRequest request,
                            const TextCallback& on_text) {
    // Owned by the engine until the last event, and by this call.
    const auto events = std::make_shared<EventQueue>();
    request.sink = events;
    Cancellation cancellation(engine);
    const auto watch = SignalWatch::start([&cancellation] { cancellation.ask(); });
    if (!watch) return watch.error();
    const auto id = engine.submit(request);
    if (!id) return id.error();
    cancellation.submitted(*id);
    Answer result;
    while (true) {
        engine::TokenEvent event = events->next();
        if (event.error) return std::move(*event.error);
        result.text += event.text;
        if (on_text && !event.text.empty() && !on_text(event.text)) cancellation.ask();
        append(result.tokens, event.tokens);
        append(result.logprobs, event.logprobs);
        append(result.prompt_logprobs, event.prompt_logprobs);
        result.usage = event.usage;
        if (!event.finish) continue;
        result.finish = *event.finish;
        result.timings = event.timings;
        return result;
    }
}

}  // namespace pagoda::apps
