#include "decode/vocab_scan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/check.h"

namespace pagoda::decode {

namespace {

// A piece is summed in 16 interleaved float lanes, the lanes and then the pieces in double.
constexpr std::size_t kLanes = 16;
constexpr std::size_t kPiece = 256;

double sum_lanes(const std::array<float, kLanes>& lanes) {
    double sum = 0;
    for (const float lane : lanes) sum += static_cast<double>(lane);
    return sum;
}

double sum_piece(const float* piece, std::size_t size) {
    std::array<float, kLanes> lanes{};
    std::size_t first = 0;
    for (; first + kLanes <= size; first += kLanes) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += piece[first + lane];
    }
    for (std::size_t lane = 0; first + lane < size; ++lane) lanes[lane] += piece[first + lane];
    return sum_lanes(lanes);
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

}  // namespace

RowPeak find_peak(std::span<const float> row) noexcept {
    constexpr float kLowest = -std::numeric_limits<float>::infinity();
    std::array<float, kLanes> peaks;
    std::array<std::int32_t, kLanes> nans{};
    peaks.fill(kLowest);
    std::size_t first = 0;
    for (; first + kLanes <= row.size(); first += kLanes) {
        const float* const values = row.data() + first;
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            const float value = values[lane];
            peaks[lane] = value > peaks[lane] ? value : peaks[lane];
            nans[lane] |= value != value ? 1 : 0;
        }
    }
    for (; first < row.size(); ++first) {
        peaks[0] = row[first] > peaks[0] ? row[first] : peaks[0];
        nans[0] |= row[first] != row[first] ? 1 : 0;
    }
    RowPeak peak{kLowest, false};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
        peak.value = std::max(peak.value, peaks[lane]);
        peak.has_nan = peak.has_nan || nans[lane] != 0;
    }
    return peak;
}

std::size_t find_first(std::span<const float> row, float value) noexcept {
    std::size_t first = 0;
    for (; first + kLanes <= row.size(); first += kLanes) {
        std::int32_t hits = 0;
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            hits |= row[first + lane] == value ? 1 : 0;
        }
        if (hits != 0) break;
    }
    while (first < row.size() && row[first] != value) ++first;
    return first;
}

std::size_t count_at_least(std::span<const float> row, float bound) noexcept {
    std::size_t count = 0;
    for (std::size_t first = 0; first < row.size(); first += kPiece) {
        const std::size_t size = std::min(kPiece, row.size() - first);
        std::int32_t hits = 0;
        for (std::size_t i = 0; i < size; ++i) hits += row[first + i] >= bound ? 1 : 0;
        count += static_cast<std::size_t>(hits);
    }
    return count;
}

float exp_of_nonpositive(float x) noexcept {
    // exp(x) = 2^n * exp(r), n = round(x / ln 2), |r| <= ln 2 / 2; adding 1.5 * 2^23 rounds, and
    // leaves n in the low bits of the sum. ln 2 is taken off in two parts, the first exactly.
    constexpr float kRounder = 0x1.8p23F;
    constexpr float kSmallest = -87.0F;
    const float clamped = x > kSmallest ? x : kSmallest;
    const float shifted = clamped * 1.44269504F + kRounder;
    const float n = shifted - kRounder;
    const float r = (clamped - n * 0x1.62e4p-1F) - n * 0x1.7f7d1cp-20F;
    float series = 1.0F / 720;
    series = series * r + 1.0F / 120;
    series = series * r + 1.0F / 24;
    series = series * r + 1.0F / 6;
    series = series * r + 0.5F;
    series = series * r * r + r + 1.0F;
    const std::uint32_t exponent = (std::bit_cast<std::uint32_t>(shifted) + 127U) << 23U;
    const float power = series * std::bit_cast<float>(exponent);
    return x >= kSmallest ? power : 0.0F;
}

void exp_row(std::span<float> row, float peak, float inverse_temperature) noexcept {
    float* const values = row.data();
    const std::size_t size = row.size();
    for (std::size_t i = 0; i < size; ++i) {
        values[i] = exp_of_nonpositive((values[i] - peak) * inverse_temperature);
    }
}

double sum_row(std::span<const float> row) noexcept {
    return sum_pieces(row.size(), [row](std::size_t first, std::size_t size) {
        return sum_piece(row.data() + first, size);
    });
}

double sum_exp_row(std::span<const float> row, float peak) noexcept {
    return sum_pieces(row.size(), [row, peak](std::size_t first, std::size_t size) {
        std::array<float, kPiece> powers;
        for (std::size_t i = 0; i < size; ++i) {
            powers[i] = exp_of_nonpositive(row[first + i] - peak);
        }
        return sum_piece(powers.data(), size);
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
        const double after = before + sum_piece(weights.data() + first, size);
        if (after > target) return first + pick_in_piece({&weights[first], size}, target - before);
        before = after;
    }
    // Rounding put the target at the very end.
    return last_positive(weights);
}

}  // namespace pagoda::decode
