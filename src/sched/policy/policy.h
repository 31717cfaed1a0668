#pragma once
// Policy: in which order waiting sequences are offered for admission, and who yields to whom. To
// add one: a file here, a PolicyKind, and its row in list.cpp. A policy borrows the sequences that
// wait; the scheduler removes each before it dies. Owned by the scheduler, on the engine thread.

#include <cstdint>
#include <memory>

#include "base/clock.h"
#include "sched/sequence.h"

namespace pagoda::sched {

// One plan's walk over the waiting sequences, best first; what it admits is only a thought yet.
class AdmissionOrder {
  public:
    virtual ~AdmissionOrder() = default;
    // The next one, or null at the end.
    [[nodiscard]] virtual const Sequence* next() = 0;
    // The one that next() gave last is admitted in this plan.
    virtual void admitted() {}
};

class Policy {
  public:
    virtual ~Policy() = default;

    // SequenceRank::key of a sequence that is submitted now.
    [[nodiscard]] virtual std::int64_t rank_key(const SequenceSpec& spec,
                                                base::TimePoint now) const = 0;
    // It waits from now on: submitted, or preempted (is_resumed).
    virtual void enqueue(const Sequence& sequence) = 0;
    // It waits no longer.
    virtual void remove(const Sequence& sequence) = 0;
    [[nodiscard]] virtual std::unique_ptr<AdmissionOrder> order() const = 0;

    // What was done for a client: a prompt on first admission, output as it comes.
    virtual void charge_prompt(const Sequence& /*sequence*/) {}
    virtual void charge_output(const Sequence& /*sequence*/, std::int64_t /*tokens*/) {}
    // The sequence is gone; called after remove().
    virtual void forget(const Sequence& /*sequence*/) {}
};

[[nodiscard]] std::unique_ptr<Policy> make_policy(const SchedulerConfig& config);

// The rows' makers, one file each.
[[nodiscard]] std::unique_ptr<Policy> make_fcfs();
[[nodiscard]] std::unique_ptr<Policy> make_priority(base::Duration aging);
[[nodiscard]] std::unique_ptr<Policy> make_fair();

}  // namespace pagoda::sched
