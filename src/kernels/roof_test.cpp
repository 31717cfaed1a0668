#include "kernels/roof.h"

#include <vector>

#include <gtest/gtest.h>

#include "kernels/registry.h"

namespace pagoda::kernels {
namespace {

TEST(Roof, EveryVariantHasARoofAndReadsMoreThanItsCaches) {
    EXPECT_GE(roof_read_bytes(), std::size_t{64} << 20U);
    EXPECT_LE(roof_read_bytes(), std::size_t{1024} << 20U);
    for (const Kernels& kernels : all_variants()) {
        if (!contains(detect_cpu_features(), kernels.required)) continue;
        EXPECT_GT(kernels.peak_int8(1000), 0) << kernels.name;
        EXPECT_GT(kernels.peak_f32(1000), 0) << kernels.name;
    }
}

TEST(Roof, ReadMemoryReadsEveryByte) {
    std::vector<std::byte> data(4096);
    for (const Kernels& kernels : all_variants()) {
        if (!contains(detect_cpu_features(), kernels.required)) continue;
        const std::uint64_t before = kernels.read_memory(data.data(), data.size());
        for (std::size_t i = 0; i < data.size(); i += 8) {
            data[i] = std::byte{4};
            EXPECT_NE(kernels.read_memory(data.data(), data.size()), before)
                << kernels.name << " byte " << i;
            data[i] = std::byte{0};
        }
    }
}

}  // namespace
}  // namespace pagoda::kernels
