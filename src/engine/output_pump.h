#pragma once
// OutputPump: makes text of tokens. On a thread of its own it detokenises, looks for stop strings
// and hands TokenEvents to the sinks, so that text never holds up a step. The engine thread pushes,
// any thread may register. Every registered sequence gets exactly one last event.

#include <functional>
#include <memory>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/queue.h"
#include "engine/engine_metrics.h"
#include "engine/executor.h"
#include "engine/request.h"
#include "text/tokenizer.h"

namespace pagoda::engine {

// A sequence that will produce tokens.
struct NewOutput {
    base::SeqId seq;
    int choice = 0;  // its number in the request, for the events
    std::int64_t num_prompt_tokens = 0;
    bool is_looked_up = false;                          // in the prefix cache
    std::vector<base::TokenId> prompt_tail;             // for text::Detokenizer
    std::shared_ptr<const decode::StopAutomaton> stop;  // owners: the sequences of the request
    std::int64_t min_tokens = 0;  // stop strings that end in the text of these first ones are text
    bool include_stop_string = false;
    bool skip_special_tokens = true;
    bool is_prompt_only = false;
    std::shared_ptr<TokenSink> sink;
    base::TimePoint submitted;
};

// What one step produced for one sequence.
struct SequenceOutput {
    base::SeqId seq;
    std::vector<base::TokenId> tokens;
    SequenceDetails details;
    std::optional<FinishReason> finish;
    std::int64_t first_position = 0;  // that the step computed
    base::TimePoint step_began, step_ended;
};

class OutputPump {
  public:
    // Does nothing before start(). on_stopped: called on the pump's thread when a stop string ended
    // a sequence that the engine still runs. All references must outlive the pump.
    OutputPump(const text::Tokenizer& tokenizer, EngineMetrics& metrics,
               std::function<void(base::SeqId)> on_stopped);
    // Ends what is still open with kAborted and joins the thread.
    ~OutputPump();
    OutputPump(const OutputPump&) = delete;
    OutputPump& operator=(const OutputPump&) = delete;

    // Once, before anything else. Fails when the system allows no more threads.
    [[nodiscard]] base::Status start();

    void add(NewOutput output);
    void push(std::vector<SequenceOutput> step);
    // Ends a sequence with that reason; nothing happens if it has ended already.
    void end(base::SeqId seq, FinishReason reason);

  private:
    struct End {
        base::SeqId seq;
        FinishReason reason;
    };
    using Message = std::variant<NewOutput, std::vector<SequenceOutput>, End>;
    struct Output;

    void run();
    void handle(NewOutput& output);
    void handle(std::vector<SequenceOutput>& step);
    void handle(End& end);
    void deliver(Output& output, SequenceOutput& step);
    void append_tokens(Output& output, SequenceOutput& step, TokenEvent& event);
    void finish(Output& output, TokenEvent event);

    const text::Tokenizer& tokenizer_;
    EngineMetrics& metrics_;
    std::function<void(base::SeqId)> on_stopped_;
    base::BlockingQueue<Message> messages_;
    std::unordered_map<base::SeqId, std::unique_ptr<Output>> outputs_;  // pump thread
    std::thread thread_;
};

}  // namespace pagoda::engine
