#include "sched/sequence.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace pagoda::sched {
namespace {

// The first position that the row at `position` reads.
std::int64_t first_position_read(std::int64_t position, std::int64_t window) {
    if (window == 0) return 0;
    return std::max<std::int64_t>(position - window + 1, 0);
}

TEST(SequenceWindows, TheFirstBlockNeededHoldsTheFirstPositionRead) {
    for (const std::int64_t window : {0, 1, 2, 31, 32, 33, 64, 65, 100}) {
        for (std::int64_t position = 0; position < 400; ++position) {
            EXPECT_EQ(first_block_needed(position, window),
                      first_position_read(position, window) / kv::kBlockTokens)
                << position << " " << window;
        }
    }
}

TEST(SequenceWindows, BlocksToAdvanceIsTheMostThatOneRowEverNeeds) {
    for (const std::int64_t window : {0, 1, 2, 31, 32, 33, 34, 64, 65, 100}) {
        std::int64_t most = 0;
        for (std::int64_t position = 0; position < 400; ++position) {
            const std::int64_t first = first_block_needed(position, window);
            most = std::max(most, position / kv::kBlockTokens - first + 1);
            EXPECT_GE(blocks_to_advance(position + 1, window), most) << position << " " << window;
        }
        EXPECT_EQ(blocks_to_advance(400, window), most) << window;
    }
}

}  // namespace
}  // namespace pagoda::sched
