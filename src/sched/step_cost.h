#pragma once
// StepCost: how long a step takes, learnt from the steps there were. Linear in what a step does:
//
//   seconds = c0 + c1 rows + c2 prefill_positions + c3 decode_positions
//
// c0 is what every step costs (weights are read once), a row is a token, and positions are keys
// that rows look back on: many rows share them in prefill, none in decoding. Coefficients are the
// non-negative least squares of relative errors, older steps counting less. What recent steps say
// nothing about keeps its value. Pure: the same steps give the same coefficients.

#include <array>
#include <cstdint>

namespace pagoda::sched {

struct StepShape {
    std::int64_t rows = 0;
    std::int64_t prefill_positions = 0;
    std::int64_t decode_positions = 0;
};

// Keys that the rows [first, first + count) of a sequence look back on.
[[nodiscard]] constexpr std::int64_t positions_read(std::int64_t first, std::int64_t count) {
    return count * first + count * (count + 1) / 2;
}

class StepCost final {
  public:
    void learn(const StepShape& shape, double seconds);
    // From a few steps on; before, the others mean nothing.
    [[nodiscard]] bool is_known() const { return num_steps_ >= kFewSteps; }
    [[nodiscard]] double seconds(const StepShape& shape) const;
    // What `tokens` prefill tokens from position `first` on add to a step.
    [[nodiscard]] double prefill_seconds(std::int64_t first, std::int64_t tokens) const;
    // The most of them that add no more than that. >= 0
    [[nodiscard]] std::int64_t prefill_tokens(double seconds, std::int64_t first,
                                              std::int64_t at_most) const;

  private:
    static constexpr std::int64_t kFewSteps = 4;
    static constexpr std::size_t kTerms = 4;
    using Terms = std::array<double, kTerms>;

    static Terms terms_of(const StepShape& shape);
    void solve();

    std::array<Terms, kTerms> normal_{};  // decayed sums of x x' / seconds^2
    Terms right_{};                       // and of x / seconds
    Terms largest_{};                     // of the diagonal, ever
    Terms coefficients_{};
    std::int64_t num_steps_ = 0;
};

}  // namespace pagoda::sched
