#pragma once
// Passes over one row of vocabulary-sized floats. Sums run over fixed pieces in a fixed order, the
// exponential and the logarithm are plain arithmetic of our own, and nothing here depends on
// threads or on the machine's instruction set, so a row gives the same bits everywhere. Free
// functions, thread-safe.

#include <cstddef>
#include <span>
#include <vector>

namespace pagoda::decode {

struct RowPeak {
    float value = 0;       // the largest entry, NaN left out; -inf for an empty row
    bool has_nan = false;  // some entry is NaN
};
[[nodiscard]] RowPeak find_peak(std::span<const float> row) noexcept;

// The first position that holds `value`; row.size() when none does.
[[nodiscard]] std::size_t find_first(std::span<const float> row, float value) noexcept;

// How many entries are at least `bound`, and how many above it. Rows of less than 2^31 entries.
[[nodiscard]] std::size_t count_at_least(std::span<const float> row, float bound) noexcept;
[[nodiscard]] std::size_t count_above(std::span<const float> row, float bound) noexcept;

// exp(x) for x <= 0, relative error below 3e-7; 0 below -87.
[[nodiscard]] float exp_of_nonpositive(float x) noexcept;

// log(x), relative error below 3e-7 in float and 5e-16 in double; -inf for 0. REQUIRES: x is 0, or
// positive, finite and no subnormal number.
[[nodiscard]] float log_of_nonnegative(float x) noexcept;
[[nodiscard]] double log_of_nonnegative(double x) noexcept;

// row[i] = exp((row[i] - peak) * inverse_temperature). REQUIRES: peak >= every entry.
void exp_row(std::span<float> row, float peak, float inverse_temperature) noexcept;

// The sum of a row, and of exp(row[i] - peak) without storing it.
[[nodiscard]] double sum_row(std::span<const float> row) noexcept;
[[nodiscard]] double sum_exp_row(std::span<const float> row, float peak) noexcept;

// The peak of each piece of kPeakPiece entries, in order.
inline constexpr std::size_t kPeakPiece = 256;
[[nodiscard]] std::vector<float> piece_peaks(std::span<const float> row);

// The first position whose running sum exceeds share * total, the sums being those of sum_row();
// an entry of 0 is never chosen. REQUIRES: 0 <= share < 1, the total is positive.
[[nodiscard]] std::size_t pick_by_mass(std::span<const float> weights, double share);

}  // namespace pagoda::decode
