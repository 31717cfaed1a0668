// Packed weights are kept on disk under the version of their layout, so that the bytes of a layout
// may change only with it.

#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/hash.h"
#include "kernels/random_weight.h"
#include "kernels/registry.h"
#include "kernels/tables.h"

namespace pagoda::kernels {
namespace {

// Of 40 rows of 512 values of every type: a whole tile and a part of one, two super-blocks.
base::Hash128 hash_of_packing(const Kernels& kernels) {
    constexpr std::int64_t kRows = 40, kCols = 512;
    std::string hashes;
    std::uint32_t state = 1;
    for (const tensor::DType dtype : kWeightTypes) {
        std::vector<std::byte> source(kRows * tensor::row_bytes(dtype, kCols));
        for (std::byte& byte : source) {
            state = state * 1664525U + 1013904223U;
            byte = static_cast<std::byte>(state >> 24U);
        }
        std::vector<std::byte> packed(kernels.packed_bytes(dtype, kRows, kCols));
        kernels.pack({.dtype = dtype,
                      .out_features = kRows,
                      .in_features = kCols,
                      .source = source.data(),
                      .packed = packed.data(),
                      .column_begin = 0,
                      .column_end = kRows});
        hashes += base::hash128(packed).hex();
    }
    return base::hash128(std::as_bytes(std::span(hashes)));
}

// A hash that differs means that packed files of this version are out there with other bytes: raise
// the layout's version in tables.h, then set both here.
TEST(PackedLayout, ChangesOnlyWithItsVersion) {
    const std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> known = {
        {{kLayoutRows, 1}, "5f701e1b0e811177a827a623186ceec8"},
        {{kLayoutTile32, 1}, "89bc4733f5967106f793d57a178a54a5"},
    };
    std::set<std::uint32_t> seen;
    for (const Kernels& variant : all_variants()) {
        const auto found = known.find({variant.layout, variant.layout_version});
        ASSERT_NE(found, known.end()) << variant.name;
        EXPECT_EQ(hash_of_packing(variant).hex(), found->second) << variant.name;
        seen.insert(variant.layout);
    }
    EXPECT_EQ(seen.size(), known.size());
}

}  // namespace
}  // namespace pagoda::kernels
