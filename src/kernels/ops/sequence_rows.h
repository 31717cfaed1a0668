#pragma once
// SequenceRows: what attention() knows of one sequence of a batch. A borrowed view.

#include <cstdint>
#include <span>

namespace pagoda::kernels {

// Consecutive rows of the batch that belong to one sequence, at consecutive positions.
struct SequenceRows {
    std::int64_t first_row = 0;
    std::int64_t num_rows = 0;
    std::int64_t first_position = 0;
    // Covers [0, first_position + num_rows); entries that no row's window reaches are not read.
    std::span<const std::int32_t> block_table;
};

}  // namespace pagoda::kernels
