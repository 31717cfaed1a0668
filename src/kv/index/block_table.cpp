#include "kv/index/block_table.h"

#include <utility>

#include "base/check.h"

namespace pagoda::kv {

BlockTable::BlockTable(BlockTable&& other) noexcept
    : held_(std::exchange(other.held_, {})), num_dropped_(std::exchange(other.num_dropped_, 0)) {}

BlockTable& BlockTable::operator=(BlockTable&& other) noexcept {
    if (this != &other) {
        clear();
        held_ = std::exchange(other.held_, {});
        num_dropped_ = std::exchange(other.num_dropped_, 0);
    }
    return *this;
}

void BlockTable::append(BlockHandle block) {
    CHECK(block.holds_block(), "an empty handle was appended");
    held_.push_back(std::move(block));
}

void BlockTable::start_at(std::int64_t index) {
    CHECK(num_blocks() == 0, "the table is not empty");
    num_dropped_ = index;
}

void BlockTable::replace(std::int64_t index, BlockHandle block) {
    CHECK(index >= num_dropped_ && index < num_blocks(), "the table holds no block at this index");
    held_[static_cast<std::size_t>(index - num_dropped_)] = std::move(block);
}

BlockTable BlockTable::fork(BlockPool& pool) const {
    BlockTable copy;
    copy.num_dropped_ = num_dropped_;
    for (const BlockHandle& block : held_) copy.held_.push_back(pool.share(block));
    return copy;
}

void BlockTable::drop_before(std::int64_t first) {
    CHECK(first <= num_blocks(), "blocks are dropped beyond the table's end");
    while (num_dropped_ < first) {
        held_.pop_front();
        ++num_dropped_;
    }
}

void BlockTable::clear() {
    while (!held_.empty()) held_.pop_back();
    num_dropped_ = 0;
}

base::BlockId BlockTable::at(std::int64_t index) const {
    CHECK(index >= num_dropped_ && index < num_blocks(), "the table holds no block at this index");
    return held_[static_cast<std::size_t>(index - num_dropped_)].id();
}

}  // namespace pagoda::kv
