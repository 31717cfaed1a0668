// Priority classes with aging. Each class below is worth `aging` of waiting: a sequence is ordered
// by the time at which it would have come, had it been of class 0. Both age alike, so that their
// order never changes while they wait, and no class starves.

#include "sched/policy/rank_queue.h"

namespace pagoda::sched {

namespace {

class Priority final : public Policy {
  public:
    explicit Priority(base::Duration aging)
        : aging_us_(std::chrono::duration_cast<std::chrono::microseconds>(aging).count()) {}

    [[nodiscard]] std::int64_t rank_key(const SequenceSpec& spec,
                                        base::TimePoint now) const override {
        const std::int64_t now_us =
            std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch()).count();
        return now_us + std::int64_t{spec.priority} * aging_us_;
    }
    void enqueue(const Sequence& sequence) override { waiting_.insert(sequence); }
    void remove(const Sequence& sequence) override { waiting_.erase(sequence); }
    [[nodiscard]] std::unique_ptr<AdmissionOrder> order() const override {
        return std::make_unique<RankQueue::Walk>(waiting_);
    }

  private:
    std::int64_t aging_us_;
    RankQueue waiting_;
};

}  // namespace

std::unique_ptr<Policy> make_priority(base::Duration aging) {
    return std::make_unique<Priority>(aging);
}

}  // namespace pagoda::sched
