#pragma once
// A small index of packed weights for tests: three weights whose sizes leave gaps of every kind.

#include "base/check.h"
#include "formats/packed_index.h"

namespace pagoda::formats {

[[nodiscard]] inline PackedIndex sample_packed_index() {
    PackedIndex index{.key = {.variant = "avx2",
                              .layout = 2,
                              .layout_version = 1,
                              .model = {0x1122334455667788, 0x99aabbccddeeff00}}};
    index.entries = {{"token_embd.weight", tensor::DType::kQ4_0, 40, 32, 1024, 0, {1, 2}},
                     {"blk.0.attn_q.weight", tensor::DType::kF16, 32, 32, 2047, 0, {3, 4}},
                     {"blk.0.ffn_up.weight", tensor::DType::kQ8_0, 64, 32, 1, 0, {5, 6}}};
    CHECK(place_packed_entries(index).ok(), "a sample that can be written");
    return index;
}

}  // namespace pagoda::formats
