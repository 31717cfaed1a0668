#pragma once
// Engine: takes requests from any thread and runs them, step by step, on a thread of its own:
// plan, run, commit. It owns the scheduler, the executor and the output pump. One request's fault
// ends that request alone.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/queue.h"
#include "base/result.h"
#include "engine/admission.h"
#include "engine/engine_metrics.h"
#include "engine/executor.h"
#include "engine/output_pump.h"
#include "engine/request.h"
#include "engine/step_log_file.h"
#include "sched/scheduler.h"
#include "text/tokenizer.h"

namespace pagoda::engine {

// What the engine works with. References outlive the engine.
struct EngineParts {
    std::unique_ptr<Executor> executor;
    const text::Tokenizer* tokenizer = nullptr;
    std::int64_t vocab_size = 0;  // of the logits; the tokenizer may know fewer
    sched::SchedulerConfig scheduler;
    // What waiting requests may hold; the memory plan has a share for it.
    std::int64_t max_queue_bytes = std::numeric_limits<std::int64_t>::max();
    std::string model_name;
    base::MetricsRegistry* metrics = nullptr;
    base::Logger* logger = nullptr;
    const base::Clock* clock = nullptr;
    // Called when the last active sequence has gone, on the thread that let it go: by submit() of a
    // stopped engine, else by the engine's own. It must not call back.
    std::function<void()> on_idle;
    // Gets every event and plan of the scheduler; null: nobody does.
    std::unique_ptr<StepLogFile> step_log;
};

class Engine {
  public:
    // Fails when the system allows no more threads.
    [[nodiscard]] static base::Result<std::unique_ptr<Engine>> start(EngineParts parts);
    // Aborts what still runs.
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // Any thread. Takes the requests of one caller together or not at all; ids in their order.
    // Refuses at once what can never run (kInvalidArgument with param, or kResourceExhausted), and
    // what finds the queue full or the engine draining (kUnavailable). After success the sinks get
    // events until the last one of every choice; the first may come before submit() returns.
    [[nodiscard]] base::Result<std::vector<base::RequestId>> submit(
        std::vector<GenerateRequest> requests);
    [[nodiscard]] base::Result<base::RequestId> submit(GenerateRequest request);
    // Any thread. Running sequences end with kAborted; ended requests are ignored.
    void cancel(base::RequestId request);

    // Any thread. Every request under way ends with kAborted.
    void abort_all();

    // Any thread. What is submitted after this has returned finds nothing of what was computed
    // before. Requests that run are not disturbed.
    void reset_prefix_cache();

    // No new requests once this has returned; those under way go on.
    void drain() { admission_.close(); }
    // Sequences that have not had their last event from the scheduler's side.
    [[nodiscard]] std::int64_t num_active() const { return admission_.num_active(); }
    // Waits until nothing is active, at most that long. True when all is done.
    [[nodiscard]] bool wait_idle(std::chrono::milliseconds at_most) const {
        return admission_.wait_idle(at_most);
    }

    // Seconds the step under way has taken; 0 between steps. For the watchdog.
    [[nodiscard]] double seconds_in_step() const;
    [[nodiscard]] std::int64_t max_model_len() const { return config_.max_model_len; }
    [[nodiscard]] std::int64_t vocab_size() const { return vocab_size_; }
    [[nodiscard]] const text::Tokenizer& tokenizer() const { return tokenizer_; }

  private:
    // A sequence that waits for its first step, and its share of what its request holds.
    struct Waiting {
        NewSequence sequence;
        std::int64_t bytes = 0;
    };
    struct Submit {
        base::RequestId request;
        std::string name;  // GenerateRequest::id
        std::vector<sched::SequenceSpec> specs;
        std::vector<Waiting> waiting;  // as specs
    };
    struct Cancel {
        base::RequestId request;
    };
    struct AbortAll {};
    struct ResetPrefixCache {};
    struct Stopped {  // by a stop string
        base::SeqId seq;
    };
    using Command = std::variant<Submit, Cancel, AbortAll, ResetPrefixCache, Stopped>;

    [[nodiscard]] base::Status check(const GenerateRequest& request) const;
    [[nodiscard]] base::Status check_lengths(const GenerateRequest& request) const;
    [[nodiscard]] base::Status check_priority(std::int32_t priority) const;
    // A request that was checked, and what is expensive to make of it.
    struct Prepared {
        GenerateRequest request;  // its prompt is in the input
        std::shared_ptr<const SequenceInput> input;
        std::shared_ptr<const decode::StopAutomaton> stop;
        std::shared_ptr<const kv::PromptKeys> prefix;  // null: no prefix cache
        Admission::Load load;
    };
    [[nodiscard]] Prepared prepare(GenerateRequest request) const;
    [[nodiscard]] std::shared_ptr<const SequenceInput> make_input(GenerateRequest& request) const;
    [[nodiscard]] std::shared_ptr<const kv::PromptKeys> make_prefix(
        const GenerateRequest& request, const std::shared_ptr<const SequenceInput>& input) const;
    [[nodiscard]] Submit make_submit(const Prepared& prepared);
    [[nodiscard]] base::RequestId launch(const Prepared& prepared);

    explicit Engine(EngineParts parts);
    void run();
    void take_commands();
    void set_step_began(std::optional<base::TimePoint> began);
    void handle(Submit& command);
    void handle(Cancel& command);
    void handle(AbortAll& command);
    void handle(ResetPrefixCache& command);
    void handle(Stopped& command);
    void step();
    [[nodiscard]] bool is_logged() const { return step_log_ != nullptr && step_log_->is_on(); }
    [[nodiscard]] std::vector<NewSequence> introduce(const sched::StepPlan& plan);
    void log_fault(base::SeqId seq, const base::Error& error);
    struct StepTimes {
        base::TimePoint began, ended;
    };
    void deliver(const sched::StepPlan& plan, StepOutput& output, const StepTimes& times);
    void forget(base::SeqId seq);
    void leave(std::int64_t num_sequences);

    // Constant after construction.
    const text::Tokenizer& tokenizer_;
    const std::int64_t vocab_size_;
    const sched::SchedulerConfig config_;
    const std::string model_name_;
    base::Logger& logger_;
    const base::Clock& clock_;
    const std::function<void()> on_idle_;
    EngineMetrics metrics_;

    // Any thread.
    std::atomic<std::uint64_t> next_request_{1};
    std::atomic<std::uint64_t> next_sequence_{1};
    Admission admission_;
    base::BlockingQueue<Command> commands_;
    mutable std::mutex step_mutex_;
    std::optional<base::TimePoint> step_began_;  // guarded by step_mutex_; none between steps

    // Engine thread.
    std::unique_ptr<Executor> executor_;
    sched::Scheduler scheduler_;
    std::unique_ptr<StepLogFile> step_log_;             // null: none
    std::unordered_map<base::SeqId, Waiting> waiting_;  // the executor has not met them
    struct Running {
        std::string name;
        std::vector<base::SeqId> sequences;
    };
    std::unordered_map<base::RequestId, Running> requests_;
    std::unordered_map<base::SeqId, base::RequestId> request_of_;

    OutputPump pump_;
    std::thread thread_;  // last: it uses everything above
};

}  // namespace pagoda::engine
