// Rounded rows of the tile layout: every field of every group by the rule of QuantizeArgs.

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/generic/tile_layout_inl.h"
#include "kernels/registry.h"
#include "kernels/tables.h"

namespace pagoda::kernels {
namespace {

// The variants that share avx2's rows.
std::vector<const Kernels*> variants_of_the_layout() {
    std::vector<const Kernels*> result;
    for (const Kernels& variant : all_variants()) {
        if (contains(detect_cpu_features(), variant.required) && variant.layout == kLayoutTile32)
            result.push_back(&variant);
    }
    return result;
}

struct Group {
    std::int8_t codes[kGroupValues];
    std::uint32_t fields[kFieldEnd - kFieldScale];
};
static_assert(sizeof(Group) == kRowGroupBytes);

Group expected_group(const float* in) {
    float largest = 0;
    bool is_finite = true;
    for (int i = 0; i < kGroupValues; ++i) {
        is_finite = is_finite && std::isfinite(in[i]);
        largest = std::max(largest, std::abs(in[i]));
    }
    Group group{};
    std::int32_t sums[2] = {0, 0};
    const bool has_codes = is_finite && largest >= kTinyActivation;
    for (int i = 0; has_codes && i < kGroupValues; ++i) {
        const float code = std::nearbyint(in[i] * (127.0F / largest));
        group.codes[i] = static_cast<std::int8_t>(code);
        sums[i / 16] += static_cast<std::int32_t>(code);
    }
    const std::int32_t sum = sums[0] + sums[1];
    const float scale = has_codes   ? largest / 127.0F
                        : is_finite ? 0.0F
                                    : std::numeric_limits<float>::quiet_NaN();
    const auto put = [&](RowField field, auto value) {
        group.fields[field - kFieldScale] = std::bit_cast<std::uint32_t>(value);
    };
    put(kFieldScale, scale);
    put(kFieldScaledSum, scale * static_cast<float>(sum));
    put(kFieldStart8, -8 * sum);
    put(kFieldStart128, -128 * sum);
    put(kFieldStart128Low, -128 * sums[0]);
    put(kFieldStart128High, -128 * sums[1]);
    put(kFieldLowSum, static_cast<float>(sums[0]));
    put(kFieldHighSum, static_cast<float>(sums[1]));
    return group;
}

// Rows of all sizes of numbers, with groups of zeros, of the tiniest, of ties, and not finite ones.
std::vector<float> mixed_values(std::size_t count) {
    std::mt19937 engine(7);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = std::ldexp(normal(engine), static_cast<int>(i / kGroupValues % 60) * 4 - 126);
    const auto fill = [&](std::size_t group, float value) {
        std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(group * kGroupValues),
                    kGroupValues, value);
    };
    fill(1, 0.0F);
    fill(2, -0.0F);
    fill(3, std::nextafter(kTinyActivation, 0.0F));
    fill(4, -kTinyActivation);
    fill(5, std::numeric_limits<float>::denorm_min());
    fill(6, std::numeric_limits<float>::max());
    values[7 * kGroupValues + 31] = std::numeric_limits<float>::infinity();
    values[8 * kGroupValues] = -std::numeric_limits<float>::quiet_NaN();
    for (int i = 0; i < kGroupValues; ++i)  // halves of a code
        values[9 * kGroupValues + static_cast<std::size_t>(i)] = static_cast<float>(i - 15) + 0.5F;
    values[9 * kGroupValues] = 127.0F;
    return values;
}

void expect_group(const std::byte* got, const float* in, std::size_t index) {
    const Group expected = expected_group(in);
    Group group;
    std::memcpy(&group, got, sizeof group);
    EXPECT_EQ(std::memcmp(group.codes, expected.codes, sizeof group.codes), 0) << index;
    for (int field = 0; field < kFieldEnd - kFieldScale; ++field) {
        const auto value = std::bit_cast<float>(expected.fields[field]);
        if (std::isnan(value) && (field == 0 || field == 1)) {
            EXPECT_TRUE(std::isnan(std::bit_cast<float>(group.fields[field]))) << index;
        } else {
            EXPECT_EQ(group.fields[field], expected.fields[field]) << index << " field " << field;
        }
    }
}

TEST(Quantize, FollowsItsRuleInEveryVariantOfTheTileLayout) {
    constexpr std::int64_t kRows = 3;
    constexpr std::int64_t kCols = 70 * kGroupValues;
    const std::vector<float> values = mixed_values(kRows * kCols);
    for (const Kernels* variant : variants_of_the_layout()) {
        SCOPED_TRACE(variant->name);
        const std::size_t row_bytes = variant->quantized_row_bytes(kCols);
        std::vector<std::byte> whole(kRows * row_bytes);
        variant->quantize({.in = values.data(),
                           .in_stride = kCols,
                           .rows = kRows,
                           .col_begin = 0,
                           .col_end = kCols,
                           .out = whole.data(),
                           .cols = kCols});
        for (std::size_t row = 0; row < kRows; ++row) {
            for (std::size_t group = 0; group < kCols / kGroupValues; ++group)
                expect_group(whole.data() + row * row_bytes + group * kRowGroupBytes,
                             values.data() + row * kCols + group * kGroupValues,
                             row * kCols / kGroupValues + group);
        }
        std::vector<std::byte> parts(kRows * row_bytes);  // in ranges of columns
        for (const auto& [begin, end] : {std::pair{0, 96}, {96, 128}, {128, int{kCols}}})
            variant->quantize({.in = values.data() + begin,
                               .in_stride = kCols,
                               .rows = kRows,
                               .col_begin = begin,
                               .col_end = end,
                               .out = parts.data(),
                               .cols = kCols});
        EXPECT_EQ(parts, whole);
    }
}

}  // namespace
}  // namespace pagoda::kernels
