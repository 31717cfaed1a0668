// An output of a linear layer is a function of its own inputs alone: every row has the bits that it
// has by itself, among any number of rows, in any range of columns, on any number of threads. For
// every variant that this machine runs, every weight type and both kinds of activations.

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "kernels/ops/linear.h"
#include "kernels/random_weight.h"
#include "kernels/registry.h"

namespace pagoda::kernels {
namespace {

using tensor::DType;

constexpr std::int64_t kMaxRows = 129;  // beyond a row block, and odd
constexpr std::int64_t kTile = 32;
constexpr float kSentinel = -12345.0F;

// What is summed: a variant, a type and the kind of the activations.
struct Subject {
    const Kernels* kernels;
    DType dtype;
    LinearSum sum;

    [[nodiscard]] bool is_reference() const { return kernels->parent == nullptr; }
    // Scalar code is slow, and has no paths that many rows would find.
    [[nodiscard]] std::int64_t max_rows() const { return is_reference() ? 21 : kMaxRows; }
    [[nodiscard]] std::string name() const {
        return std::string(kernels->name) + " " + std::string(tensor::info(dtype).name) + " " +
               std::string(name_of(sum));
    }
};

std::vector<Subject> subjects() {
    std::vector<Subject> list;
    const CpuFeature features = detect_cpu_features();
    for (const Kernels& kernels : all_variants()) {
        if (!contains(features, kernels.required)) continue;
        for (const DType dtype : kWeightTypes)
            for (const LinearSum sum : sums_for(kernels, dtype, 2))
                list.push_back({&kernels, dtype, sum});
    }
    return list;
}

// A layer, rows for it, and what each of them gives alone.
class Layer {
  public:
    Layer(const Subject& subject, std::int64_t out, std::int64_t in)
        : subject_(subject),
          out_(out),
          in_(in),
          source_(random_weight(subject.dtype, out, in, 31)),
          probe_(*subject.kernels, subject.dtype, out, in, source_),
          x_(random_rows(subject.max_rows(), in, 32)),
          alone_(static_cast<std::size_t>(subject.max_rows() * out)),
          together_(alone_.size()) {
        for (std::int64_t row = 0; row < subject.max_rows(); ++row)
            probe_.run(x_.data() + row * in, 1, alone_.data() + row * out, {.sum = subject.sum});
    }

    // The columns [begin, end) of `rows` rows at once.
    void expect_same_bits(std::int64_t rows, std::int64_t begin, std::int64_t end) {
        std::fill(together_.begin(), together_.end(), kSentinel);
        probe_.run(x_.data(), rows, together_.data(),
                   {.sum = subject_.sum, .column_begin = begin, .column_end = end});
        for (std::int64_t row = 0; row < rows; ++row) {
            ASSERT_TRUE(is_alone(row, begin, end)) << text(rows, begin) << ", row " << row;
            ASSERT_TRUE(begin == 0 || together_[row * out_ + begin - 1] == kSentinel);
            ASSERT_TRUE(end == out_ || together_[row * out_ + end] == kSentinel);
        }
    }

    // All columns through the operator.
    void expect_same_bits(const DeviceContext& device, const Weight& weight, std::int64_t rows) {
        Activations in(device, rows, in_);
        in.set(x_.data(), rows, in_, in_);
        linear(device, weight, in, {.out = together_.data(), .stride = out_});
        for (std::int64_t row = 0; row < rows; ++row)
            ASSERT_TRUE(is_alone(row, 0, out_))
                << text(rows, 0) << ", row " << row << ", threads " << device.team->num_threads();
    }

    [[nodiscard]] tensor::TensorView view() const {
        return {subject_.dtype, {out_, in_}, source_.data(), source_.size()};
    }

  private:
    [[nodiscard]] bool is_alone(std::int64_t row, std::int64_t begin, std::int64_t end) const {
        const std::int64_t at = row * out_ + begin;
        return std::memcmp(alone_.data() + at, together_.data() + at,
                           static_cast<std::size_t>(end - begin) * sizeof(float)) == 0;
    }
    [[nodiscard]] std::string text(std::int64_t rows, std::int64_t begin) const {
        return subject_.name() + " " + std::to_string(out_) + " x " + std::to_string(in_) +
               ", rows " + std::to_string(rows) + ", from column " + std::to_string(begin);
    }

    const Subject subject_;
    const std::int64_t out_, in_;
    const std::vector<std::byte> source_;
    const LinearProbe probe_;
    const std::vector<float> x_;
    std::vector<float> alone_;  // [max_rows, out]
    std::vector<float> together_;
};

// More than one panel of K for few rows.
std::int64_t some_inputs(const Subject& subject) {
    if (subject.sum == LinearSum::kBf16) return 294;
    const int values = tensor::info(subject.dtype).block_values;
    return values == 1 ? 133 : (values == 32 ? 288 : 512);
}
// More than one panel of K for any rows.
std::int64_t many_inputs(const Subject& subject) {
    if (subject.sum == LinearSum::kBf16) return 614;
    const int values = tensor::info(subject.dtype).block_values;
    return values == 1 ? 300 : (values == 32 ? 800 : 768);
}

TEST(LinearBits, ARowIsAsItIsAloneAmongAnyNumberOfRows) {
    constexpr std::int64_t kOut = 97;
    for (const Subject& subject : subjects()) {
        Layer layer(subject, kOut, some_inputs(subject));
        const std::int64_t step = subject.is_reference() ? 10 : 1;
        for (std::int64_t rows = 1; rows <= subject.max_rows(); rows += step) {
            layer.expect_same_bits(rows, 0, kOut);
            if (HasFatalFailure()) return;
        }
    }
}

TEST(LinearBits, ARowIsAsItIsAloneInAnyRangeOfColumns) {
    constexpr std::int64_t kOut = 90;
    constexpr std::pair<std::int64_t, std::int64_t> kRanges[] = {
        {0, kTile}, {kTile, 2 * kTile}, {2 * kTile, kOut}, {0, 2 * kTile}, {kTile, kOut}};
    for (const Subject& subject : subjects()) {
        Layer layer(subject, kOut, some_inputs(subject));
        for (const auto& [begin, end] : kRanges) {
            for (std::int64_t rows = 1 + begin / kTile; rows <= subject.max_rows(); rows += 9) {
                layer.expect_same_bits(rows, begin, end);
                if (HasFatalFailure()) return;
            }
        }
    }
}

TEST(LinearBits, ARowIsAsItIsAloneAcrossPanelsAndRunsOfTiles) {
    constexpr std::int64_t kOut = 330;
    for (const Subject& subject : subjects()) {
        if (subject.is_reference()) continue;
        Layer layer(subject, kOut, many_inputs(subject));
        for (const std::int64_t rows : {2, 12, 25, 49, 96, 97, 129}) {
            layer.expect_same_bits(rows, 0, kOut);
            if (HasFatalFailure()) return;
        }
    }
}

TEST(LinearBits, ARowIsAsItIsAloneOnOneThreadAndOnTwo) {
    constexpr std::int64_t kOut = 97;
    for (const int threads : {1, 2}) {
        base::ThreadTeam team(threads);
        for (const Subject& subject : subjects()) {
            const bool is_reached =
                subject.sum != LinearSum::kBf16 || subject.kernels->multiplies_bf16;
            if (subject.is_reference() || !is_reached) continue;
            Layer layer(subject, kOut, some_inputs(subject));
            const DeviceContext device{
                subject.kernels, &team,
                subject.sum == LinearSum::kF32 ? ActivationMode::kF32 : ActivationMode::kAuto};
            const Weight weight(device, layer.view());
            for (const std::int64_t rows : {1, 2, 5, 8, 13, 33, 48, 49, 64, 95, 97, 128, 129}) {
                layer.expect_same_bits(device, weight, rows);
                if (HasFatalFailure()) return;
            }
        }
    }
}

}  // namespace
}  // namespace pagoda::kernels
