// First come, first served.

#include "sched/policy/rank_queue.h"

namespace pagoda::sched {

namespace {

class Fcfs final : public Policy {
  public:
    [[nodiscard]] std::int64_t rank_key(const SequenceSpec& /*spec*/,
                                        base::TimePoint /*now*/) const override {
        return 0;  // the ticket decides
    }
    void enqueue(const Sequence& sequence) override { waiting_.insert(sequence); }
    void remove(const Sequence& sequence) override { waiting_.erase(sequence); }
    [[nodiscard]] std::unique_ptr<AdmissionOrder> order() const override {
        return std::make_unique<RankQueue::Walk>(waiting_);
    }

  private:
    RankQueue waiting_;
};

}  // namespace

std::unique_ptr<Policy> make_fcfs() {
    return std::make_unique<Fcfs>();
}

}  // namespace pagoda::sched
