#include "sched/step_cost.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace pagoda::sched {

namespace {

constexpr double kDecay = 0.98;   // of what a step counts, per step after it
constexpr double kHold = 1e-4;    // share of a term's weight that holds it where it was
constexpr double kOutlier = 2.0;  // times the prediction: what more a step took was not its doing

}  // namespace

StepCost::Terms StepCost::terms_of(const StepShape& shape) {
    return {1.0, static_cast<double>(shape.rows), static_cast<double>(shape.prefill_positions),
            static_cast<double>(shape.decode_positions)};
}

void StepCost::learn(const StepShape& shape, double seconds) {
    if (!(seconds > 0) || shape.rows <= 0) return;
    if (is_known()) seconds = std::min(seconds, kOutlier * StepCost::seconds(shape));
    const Terms x = terms_of(shape);
    for (std::size_t i = 0; i < kTerms; ++i) {
        for (std::size_t j = 0; j < kTerms; ++j)
            normal_[i][j] = kDecay * normal_[i][j] + x[i] * x[j] / (seconds * seconds);
        right_[i] = kDecay * right_[i] + x[i] / seconds;
        largest_[i] = std::max(largest_[i], normal_[i][i]);
    }
    ++num_steps_;
    solve();
}

// Coordinate descent over non-negative coefficients, from those there were; each is held there by a
// small share of the most that was ever known of it.
void StepCost::solve() {
    const Terms before = coefficients_;
    constexpr int kRounds = 50;
    for (int round = 0; round < kRounds; ++round) {
        double change = 0;
        for (std::size_t i = 0; i < kTerms; ++i) {
            const double hold = kHold * largest_[i];
            if (!(normal_[i][i] + hold > 0)) continue;
            double rest = right_[i] + hold * before[i];
            for (std::size_t j = 0; j < kTerms; ++j)
                if (j != i) rest -= normal_[i][j] * coefficients_[j];
            const double next = std::max(0.0, rest / (normal_[i][i] + hold));
            change = std::max(change,
                              std::abs(next - coefficients_[i]) * std::sqrt(normal_[i][i] + hold));
            coefficients_[i] = next;
        }
        if (change < 1e-6) break;
    }
}

double StepCost::seconds(const StepShape& shape) const {
    const Terms x = terms_of(shape);
    double sum = 0;
    for (std::size_t i = 0; i < kTerms; ++i) sum += coefficients_[i] * x[i];
    return sum;
}

double StepCost::prefill_seconds(std::int64_t first, std::int64_t tokens) const {
    return coefficients_[1] * static_cast<double>(tokens) +
           coefficients_[2] * static_cast<double>(positions_read(first, tokens));
}

std::int64_t StepCost::prefill_tokens(double seconds, std::int64_t first,
                                      std::int64_t at_most) const {
    std::int64_t low = 0;
    std::int64_t high = at_most;
    while (low < high) {
        const std::int64_t middle = low + (high - low + 1) / 2;
        if (prefill_seconds(first, middle) <= seconds) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

}  // namespace pagoda::sched
