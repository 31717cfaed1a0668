#pragma once
// Replay: a scheduler that is given the events of a step log again, without a model, and whose
// plans are compared with those that were logged. One thread owns it.

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "sched/scheduler.h"
#include "sched/step_log.h"

namespace pagoda::sched {

// Where a plan is not what the log has.
struct ReplayDifference {
    std::uint64_t step = 0;
    std::string field;          // "sequences[3].new_blocks"
    std::string expected, got;  // of the log; of this scheduler
};

class Replay {
  public:
    // REQUIRES: the configuration is that of a header (parse_header_line). The clock measures how
    // long plans take, and outlives the replay.
    Replay(SchedulerConfig config, const base::Clock& clock);

    // Nothing, or the first difference; after one, events are no longer comparable. Errors are
    // kDataLoss: events that no scheduler can have had, whatever it planned. The replay is then
    // as it was before.
    [[nodiscard]] base::Result<std::optional<ReplayDifference>> apply(const LoggedEvent& event);

    [[nodiscard]] SchedulerStats stats() const { return scheduler_.stats(); }
    [[nodiscard]] std::int64_t num_sequences() const { return num_sequences_; }
    [[nodiscard]] std::int64_t num_output_tokens() const { return num_output_tokens_; }
    // Those of the scheduler, for tests.
    void check_invariants() const { scheduler_.check_invariants(); }
    // Of each step.
    [[nodiscard]] const std::vector<base::Duration>& plan_times() const { return plan_times_; }

  private:
    using Outcome = base::Result<std::optional<ReplayDifference>>;
    [[nodiscard]] Outcome on(const LoggedSubmit& submit);
    [[nodiscard]] Outcome on(const LoggedCancel& cancel);
    [[nodiscard]] Outcome on(const LoggedFinish& finish);
    [[nodiscard]] Outcome on(const LoggedReset& reset);
    [[nodiscard]] Outcome on(const LoggedStep& step);
    [[nodiscard]] base::Status check_result(const SequencePlan& part,
                                            const SequenceResult& result) const;

    struct Length {
        std::int64_t total = 0, most = 0;
    };

    Scheduler scheduler_;
    const base::Clock& clock_;
    std::unordered_map<base::SeqId, Length> lengths_;  // of those that have not ended
    std::uint64_t num_steps_ = 0;
    std::int64_t num_sequences_ = 0;
    std::int64_t num_output_tokens_ = 0;
    std::vector<base::Duration> plan_times_;
};

// The first field in which two plans differ.
[[nodiscard]] std::optional<ReplayDifference> first_difference(const StepPlan& expected,
                                                               const StepPlan& got);

}  // namespace pagoda::sched
