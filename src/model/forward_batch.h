#pragma once
// ForwardBatch: the seam between engine and model: the rows of one step. Borrowed views, valid for
// the call. Rows of one sequence are consecutive, at consecutive positions.

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace pagoda::model {

struct SequenceSlice {
    std::int64_t first_row = 0;
    std::int64_t num_rows = 0;
    std::int64_t first_position = 0;
    // Per KV group, the block of positions [32 i, 32 i + 32), up to the last row's position.
    std::vector<std::span<const std::int32_t>> block_tables;
};

struct ForwardBatch {
    std::span<const base::TokenId> tokens;  // [rows]
    std::span<const SequenceSlice> sequences;
};

}  // namespace pagoda::model
