#pragma once
// One request to the engine of this process, from submit to its last event, as run, perplexity and
// bench engine make it. Called from one thread.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/queue.h"
#include "base/result.h"
#include "engine/engine.h"

namespace pagoda::apps {

// Events in a queue, for a reader on another thread.
class EventQueue final : public engine::TokenSink {
  public:
    void on_event(engine::TokenEvent&& event) noexcept override {
        static_cast<void>(events_.try_push(std::move(event)));
    }
    [[nodiscard]] engine::TokenEvent next() { return *events_.pop(); }

  private:
    base::BlockingQueue<engine::TokenEvent> events_;
};

struct Answer {
    std::string text;
    std::vector<base::TokenId> tokens;
    std::vector<decode::TokenLogprob> logprobs;
    std::vector<decode::TokenLogprob> prompt_logprobs;
    engine::FinishReason finish = engine::FinishReason::kStop;
    engine::Usage usage;
    engine::Timings timings;
};

// False when nobody takes the text any more.
using TextCallback = std::function<bool(const std::string& text)>;
// To standard output, at once; a terminal gets control characters escaped.
[[nodiscard]] bool print_piece(const std::string& piece);

// Runs the request and hands its text on as it comes. SIGINT, SIGTERM and a callback that says no
// end it early with kAborted.
[[nodiscard]] base::Result<Answer> answer(engine::Engine& engine, engine::GenerateRequest request,
                                          const TextCallback& on_text = nullptr);

}  // namespace pagoda::apps
