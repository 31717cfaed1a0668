#pragma once
// The lines of a step log: all that went into a scheduler and what it planned, so that the same
// plans can be made again without a model (replay.h). A line is one JSON object: the first the
// header, then one for each event, in order; docs/scheduler.md has the members. Whose a prompt is
// stands there as the hash of it under the process's key, which is not written: equal for equal
// scopes, and hits depend on nothing else of it. Prompts and outputs are token ids, and only where
// the prefix cache compares them. Free functions; every line ends with a newline.

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "sched/scheduler.h"
#include "sched/step_plan.h"

namespace pagoda::sched {

inline constexpr std::int64_t kStepLogVersion = 1;

struct LoggedSubmit {
    base::TimePoint now;
    std::vector<SequenceSpec> sequences;
};
struct LoggedCancel {
    base::SeqId seq;
};
struct LoggedFinish {
    base::SeqId seq;
};
struct LoggedReset {};  // of the prefix cache
struct LoggedStep {
    StepPlan plan;
    StepResult result;
};
using LoggedEvent = std::variant<LoggedSubmit, LoggedCancel, LoggedFinish, LoggedReset, LoggedStep>;

[[nodiscard]] std::string header_line(const SchedulerConfig& config);
// Of sequences that the scheduler took.
[[nodiscard]] std::string submit_line(std::span<const SequenceSpec> sequences, base::TimePoint now);
[[nodiscard]] std::string cancel_line(base::SeqId seq);
[[nodiscard]] std::string finish_line(base::SeqId seq);
[[nodiscard]] std::string reset_line();
// Of a plan that was committed with the result.
[[nodiscard]] std::string step_line(const SchedulerConfig& config, const StepPlan& plan,
                                    const StepResult& result);

// The lines again, without their newline; whatever they hold. Errors are kDataLoss and name member,
// value and limit, not the line's number. Every number is within what a scheduler can be given or
// the reader refuses it; a header is also that of a configuration that validate() takes, with a
// hasher where it had a prefix cache.
[[nodiscard]] base::Result<SchedulerConfig> parse_header_line(std::string_view line);
[[nodiscard]] base::Result<LoggedEvent> parse_event_line(std::string_view line,
                                                         const SchedulerConfig& config);

}  // namespace pagoda::sched
