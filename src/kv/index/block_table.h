#pragma once
// BlockTable: the blocks of one sequence in one KV group, by position / kBlockTokens. It grows at
// the end. The front falls away where no window reaches it any more, and the indices of the rest
// stay.
//
//   index      0     1     2     3     4
//           [ gone, gone,  b7,   b2,   b9 ]      num_dropped() 2, num_blocks() 5, num_held() 3
//
// Owned by one sequence, on the engine thread; its pool outlives it.

#include <cstdint>
#include <deque>

#include "kv/index/block_pool.h"

namespace pagoda::kv {

class BlockTable final {
  public:
    BlockTable() = default;
    ~BlockTable() { clear(); }
    BlockTable(BlockTable&& other) noexcept;
    BlockTable& operator=(BlockTable&& other) noexcept;
    BlockTable(const BlockTable&) = delete;
    BlockTable& operator=(const BlockTable&) = delete;

    void append(BlockHandle block);
    // An empty table begins at that index, as one whose front fell away. REQUIRES: no blocks yet
    void start_at(std::int64_t index);
    // Another block with the same content takes this one's place. REQUIRES: as at()
    void replace(std::int64_t index, BlockHandle block);
    // The same blocks once more, for a sequence that goes on from the same tokens. Whoever writes
    // to the last one, if it is not full, must have a copy of its own first.
    [[nodiscard]] BlockTable fork(BlockPool& pool) const;
    // Gives back the blocks with an index below `first`. REQUIRES: first <= num_blocks()
    void drop_before(std::int64_t first);
    // Empty again, as a new table. The last block is given back first.
    void clear();

    [[nodiscard]] std::int64_t num_blocks() const { return num_dropped_ + num_held(); }
    [[nodiscard]] std::int64_t num_dropped() const { return num_dropped_; }
    [[nodiscard]] std::int64_t num_held() const { return std::ssize(held_); }
    // REQUIRES: num_dropped() <= index < num_blocks()
    [[nodiscard]] base::BlockId at(std::int64_t index) const;

  private:
    std::deque<BlockHandle> held_;
    std::int64_t num_dropped_ = 0;
};

}  // namespace pagoda::kv
