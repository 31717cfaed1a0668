#pragma once
// RankQueue: waiting sequences by rank. Owned by one policy, on the engine thread.

#include <map>
#include <memory>

#include "base/check.h"
#include "sched/policy/policy.h"

namespace pagoda::sched {

class RankQueue final {
  public:
    void insert(const Sequence& sequence) {
        const bool is_new = by_rank_.emplace(sequence.rank, &sequence).second;
        CHECK(is_new, "a sequence waits twice");
    }
    void erase(const Sequence& sequence) {
        CHECK(by_rank_.erase(sequence.rank) == 1, "a sequence that does not wait was removed");
    }
    [[nodiscard]] bool empty() const { return by_rank_.empty(); }

    // Borrows the queue, which does not change meanwhile.
    class Walk final : public AdmissionOrder {
      public:
        explicit Walk(const RankQueue& queue)
            : next_(queue.by_rank_.begin()), end_(queue.by_rank_.end()) {}
        [[nodiscard]] const Sequence* next() override {
            return next_ == end_ ? nullptr : (next_++)->second;
        }

      private:
        std::map<SequenceRank, const Sequence*>::const_iterator next_, end_;
    };

  private:
    std::map<SequenceRank, const Sequence*> by_rank_;
};

}  // namespace pagoda::sched
