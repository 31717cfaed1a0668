#include "decode/vocab_scan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "base/check.h"

namespace pagoda::decode {

namespace {

// Four lanes, spelled out so that every compiler keeps them in registers; sixteen are in flight.
using Floats = float __attribute__((vector_size(16)));
using Ints = std::int32_t __attribute__((vector_size(16)));
constexpr std::size_t kVector = 4;
constexpr std::size_t kVectors = 4;
constexpr std::size_t kLanes = kVector * kVectors;
// A piece is summed in its lanes in float, the lanes and then the pieces in double.
constexpr std::size_t kPiece = kPeakPiece;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

Floats load(const float* values) {
    Floats vector;
    std::memcpy(&vector, values, sizeof(vector));
    return vector;
}
void store(float* values, Floats vector) {
    std::memcpy(values, &vector, sizeof(vector));
}
Floats splat(float value) {
    return Floats{value, value, value, value};
}
float larger(float a, float b) {
    return a > b ? a : b;
}
Floats larger(Floats a, Floats b) {
    return a > b ? a : b;
}

// exp(x) = 2^n * exp(r), n = round(x / ln 2), |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds, and leaves
// n in the low bits of the sum. ln 2 is taken off in two parts, the first exactly. The same
// operations on one float and on four give the same bits.
constexpr float kSmallest = -87.0F;
constexpr float kRounder = 0x1.8p23F;

template <class Value, class Bits>
Value power_of_clamped(Value clamped, Bits bias) {
    const Value shifted = clamped * 1.44269504F + kRounder;
    const Value n = shifted - kRounder;
    const Value r = (clamped - n * 0x1.62e4p-1F) - n * 0x1.7f7d1cp-20F;
    Value series = r * (1.0F / 720) + 1.0F / 120;
    series = series * r + 1.0F / 24;
    series = series * r + 1.0F / 6;
    series = series * r + 0.5F;
    series = series * r * r + r + 1.0F;
    const Bits exponent = (std::bit_cast<Bits>(shifted) + bias) << 23;
    return series * std::bit_cast<Value>(exponent);
}

Floats exp_of_nonpositive(Floats x) {
    using Unsigned = std::uint32_t __attribute__((vector_size(16)));
    const Floats power =
        power_of_clamped(larger(x, splat(kSmallest)), Unsigned{127, 127, 127, 127});
    return x >= splat(kSmallest) ? power : splat(0.0F);
}

// Per type: how many bits the mantissa has, sqrt(1/2), ln 2 in two parts (whole numbers of the
// exponent's size times the first are exact) and the terms of the series that matter.
template <class Float>
struct LogParts;
template <>
struct LogParts<float> {
    using Bits = std::int32_t;
    static constexpr int kMantissaBits = 23;
    static constexpr float kRootOfHalf = 0x1.6a09e6p-1F;
    static constexpr float kLn2High = 0x1.62e4p-1F, kLn2Low = 0x1.7f7d1cp-20F;
    static constexpr int kTerms = 5;
};
template <>
struct LogParts<double> {
    using Bits = std::int64_t;
    static constexpr int kMantissaBits = 52;
    static constexpr double kRootOfHalf = 0x1.6a09e667f3bcdp-1;
    static constexpr double kLn2High = 0x1.62e42fefa38p-1, kLn2Low = 0x1.ef35793c7673p-45;
    static constexpr int kTerms = 11;
};

// x = 2^n * m with sqrt(1/2) <= m < sqrt(2); with s = (m - 1) / (m + 1), which is below 0.172,
// log m = 2 (s + s^3 / 3 + s^5 / 5 + ...).
template <class Float>
Float log_of_normal(Float x) {
    using Parts = LogParts<Float>;
    using Bits = typename Parts::Bits;
    constexpr Bits kRoot = std::bit_cast<Bits>(Parts::kRootOfHalf);
    constexpr Bits kMantissa = (Bits{1} << Parts::kMantissaBits) - 1;
    const Bits above_root = std::bit_cast<Bits>(x) - kRoot;
    const auto n = static_cast<Float>(above_root >> Parts::kMantissaBits);
    const auto m = std::bit_cast<Float>((above_root & kMantissa) + kRoot);
    const Float s = (m - 1) / (m + 1);
    const Float square = s * s;
    Float series = 0;
    for (int term = Parts::kTerms - 1; term > 0; --term)
        series = (series + Float{1} / static_cast<Float>(2 * term + 1)) * square;
    return n * Parts::kLn2High + (2 * s + (2 * s * series + n * Parts::kLn2Low));
}

double sum_lanes(const std::array<Floats, kVectors>& lanes) {
    double sum = 0;
    for (const Floats& vector : lanes) {
        for (std::size_t lane = 0; lane < kVector; ++lane) sum += static_cast<double>(vector[lane]);
    }
    return sum;
}

// The sum of term(row[i]); `term` takes a Floats.
template <class Term>
double sum_piece(const float* row, std::size_t size, Term term) {
    std::array<Floats, kVectors> lanes{};
    std::size_t first = 0;
    for (; first + kLanes <= size; first += kLanes) {
        for (std::size_t i = 0; i < kVectors; ++i)
            lanes[i] += term(load(row + first + i * kVector));
    }
    if (first < size) {
        // The tail goes to the lanes that it would have had; the rest of them add nothing.
        std::array<float, kLanes> tail;
        tail.fill(kLowest);
        std::copy(row + first, row + size, tail.begin());
        for (std::size_t i = 0; i < kVectors; ++i) {
            const Floats values = load(tail.data() + i * kVector);
            lanes[i] += values == splat(kLowest) ? splat(0.0F) : term(values);
        }
    }
    return sum_lanes(lanes);
}

double plain_sum(const float* row, std::size_t size) {
    return sum_piece(row, size, [](Floats values) { return values; });
}

std::size_t last_positive(std::span<const float> weights) {
    std::size_t end = weights.size();
    while (end > 0 && !(weights[end - 1] > 0)) --end;
    CHECK(end > 0, "a row without positive weight was sampled");
    return end - 1;
}

// Where the running sum of one piece first exceeds the target; the lanes of sum_piece() may have
// rounded differently, and then it is the last entry that has weight.
std::size_t pick_in_piece(std::span<const float> piece, double target) {
    double running = 0;
    for (std::size_t i = 0; i < piece.size(); ++i) {
        running += static_cast<double>(piece[i]);
        if (piece[i] > 0 && running > target) return i;
    }
    return last_positive(piece);
}

template <class PieceSum>
double sum_pieces(std::size_t size, PieceSum piece_sum) {
    double total = 0;
    for (std::size_t first = 0; first < size; first += kPiece) {
        total += piece_sum(first, std::min(kPiece, size - first));
    }
    return total;
}

// How many entries pass `test`, which takes a Floats and gives lanes of 0 or -1.
template <class Test>
std::size_t count_if(std::span<const float> row, Test test) {
    Ints hits{};
    std::size_t first = 0;
    for (; first + kVector <= row.size(); first += kVector) hits -= test(load(row.data() + first));
    std::int64_t count = std::int64_t{hits[0]} + hits[1] + hits[2] + hits[3];
    for (; first < row.size(); ++first) count -= test(splat(row[first]))[0];
    return static_cast<std::size_t>(count);
}

}  // namespace

RowPeak find_peak(std::span<const float> row) noexcept {
    std::array<Floats, kVectors> peaks;
    std::array<Ints, kVectors> nans{};
    peaks.fill(splat(kLowest));
    std::size_t first = 0;
    for (; first + kLanes <= row.size(); first += kLanes) {
        for (std::size_t i = 0; i < kVectors; ++i) {
            const Floats values = load(row.data() + first + i * kVector);
            peaks[i] = larger(values, peaks[i]);
            nans[i] |= values != values;  // NOLINT(misc-redundant-expression): true of NaN
        }
    }
    RowPeak peak{kLowest, false};
    for (; first < row.size(); ++first) {
        peak.value = larger(row[first], peak.value);
        peak.has_nan = peak.has_nan || row[first] != row[first];
    }
    for (std::size_t i = 0; i < kVectors; ++i) {
        for (std::size_t lane = 0; lane < kVector; ++lane) {
            peak.value = larger(peaks[i][lane], peak.value);
            peak.has_nan = peak.has_nan || nans[i][lane] != 0;
        }
    }
    return peak;
}

std::size_t find_first(std::span<const float> row, float value) noexcept {
    std::size_t first = 0;
    for (; first + kLanes <= row.size(); first += kLanes) {
        Ints hits{};
        for (std::size_t i = 0; i < kVectors; ++i) {
            hits |= load(row.data() + first + i * kVector) == splat(value);
        }
        if ((hits[0] | hits[1] | hits[2] | hits[3]) != 0) break;
    }
    while (first < row.size() && row[first] != value) ++first;
    return first;
}

std::size_t count_at_least(std::span<const float> row, float bound) noexcept {
    return count_if(row, [bound](Floats values) { return Ints{values >= splat(bound)}; });
}

std::size_t count_above(std::span<const float> row, float bound) noexcept {
    return count_if(row, [bound](Floats values) { return Ints{values > splat(bound)}; });
}

float exp_of_nonpositive(float x) noexcept {
    const float power = power_of_clamped(larger(x, kSmallest), std::uint32_t{127});
    return x >= kSmallest ? power : 0.0F;
}

float log_of_nonnegative(float x) noexcept {
    return x > 0 ? log_of_normal(x) : kLowest;
}

double log_of_nonnegative(double x) noexcept {
    return x > 0 ? log_of_normal(x) : -std::numeric_limits<double>::infinity();
}

void exp_row(std::span<float> row, float peak, float inverse_temperature) noexcept {
    std::size_t first = 0;
    for (; first + kVector <= row.size(); first += kVector) {
        const Floats scaled = (load(row.data() + first) - peak) * inverse_temperature;
        store(row.data() + first, exp_of_nonpositive(scaled));
    }
    for (; first < row.size(); ++first) {
        row[first] = exp_of_nonpositive((row[first] - peak) * inverse_temperature);
    }
}

double sum_row(std::span<const float> row) noexcept {
    return sum_pieces(row.size(), [row](std::size_t first, std::size_t size) {
        return plain_sum(row.data() + first, size);
    });
}

double sum_exp_row(std::span<const float> row, float peak) noexcept {
    return sum_pieces(row.size(), [row, peak](std::size_t first, std::size_t size) {
        return sum_piece(row.data() + first, size,
                         [peak](Floats values) { return exp_of_nonpositive(values - peak); });
    });
}

std::vector<float> piece_peaks(std::span<const float> row) {
    std::vector<float> peaks;
    peaks.reserve(row.size() / kPiece + 1);
    for (std::size_t first = 0; first < row.size(); first += kPiece) {
        const std::size_t size = std::min(kPiece, row.size() - first);
        peaks.push_back(find_peak(row.subspan(first, size)).value);
    }
    return peaks;
}

std::size_t pick_by_mass(std::span<const float> weights, double share) {
    const double target = share * sum_row(weights);
    double before = 0;  // mass of the pieces in front
    for (std::size_t first = 0; first < weights.size(); first += kPiece) {
        const std::size_t size = std::min(kPiece, weights.size() - first);
        const double after = before + plain_sum(weights.data() + first, size);
        if (after > target) return first + pick_in_piece({&weights[first], size}, target - before);
        before = after;
    }
    // Rounding put the target at the very end.
    return last_positive(weights);
}

}  // namespace pagoda::decode
