#pragma once
// What running sequences will still need. OutputForecast learns how long outputs get from those
// that ended; FutureDemand adds up what all of them will hold when their sum is largest. Together
// they decide whether one more sequence may start: reserving every sequence's maximum would leave
// most of the cache empty, reserving nothing would start sequences only to preempt them. Owned by
// the scheduler.

#include <array>
#include <cstdint>
#include <vector>

namespace pagoda::sched {

class OutputForecast final {
  public:
    OutputForecast();
    void record(std::int64_t output_tokens);
    // Expected further output of a sequence that has `so_far` output tokens, at least 1: the mean
    // over the recorded outputs that were longer. Beyond all of them: as many again.
    [[nodiscard]] std::int64_t remaining(std::int64_t so_far) const;

  private:
    struct Bucket {
        double count = 0;
        double tokens = 0;
        void add(double times, std::int64_t length) {
            count += times;
            tokens += times * static_cast<double>(length);
        }
    };
    static constexpr std::size_t kNumBuckets = 256;        // any std::int64_t
    [[nodiscard]] Bucket bucket(std::size_t index) const;  // with the prior
    void update_above();

    std::array<Bucket, kNumBuckets> buckets_;    // by length, four an octave
    std::array<Bucket, kNumBuckets + 1> above_;  // sums of the buckets from here on
    double prior_count_;
};

// The most blocks that a set of sequences will hold at once in a group of full attention, if each
// gets the remaining tokens forecast for it, one a step, and then gives all back.
class FutureDemand final {
  public:
    struct Item {
        std::int64_t tokens = 0;     // known so far
        std::int64_t remaining = 0;  // forecast
        std::int64_t shared = 0;     // of `tokens`, those in blocks that a longer item counts
    };
    void add(Item item);
    [[nodiscard]] std::int64_t peak_with(Item candidate) const;
    [[nodiscard]] bool empty() const { return items_.empty(); }
    [[nodiscard]] const std::vector<Item>& items() const { return items_; }

  private:
    std::vector<Item> items_;  // longest remaining first
};

}  // namespace pagoda::sched
