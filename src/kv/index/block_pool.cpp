#include "kv/index/block_pool.h"

#include <limits>
#include <utility>

#include "base/check.h"

namespace pagoda::kv {

BlockHandle::BlockHandle(BlockHandle&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), id_(other.id_) {}

BlockHandle& BlockHandle::operator=(BlockHandle&& other) noexcept {
    if (this != &other) {
        reset();
        pool_ = std::exchange(other.pool_, nullptr);
        id_ = other.id_;
    }
    return *this;
}

base::BlockId BlockHandle::id() const {
    CHECK(holds_block(), "an empty handle has no block");
    return id_;
}

void BlockHandle::reset() {
    if (pool_ != nullptr) std::exchange(pool_, nullptr)->release(id_);
}

BlockPool::BlockPool(std::int64_t num_blocks) {
    CHECK(num_blocks >= 0 && num_blocks < std::numeric_limits<std::int32_t>::max() - 3,
          "the number of blocks does not fit an id");
    const auto count = static_cast<std::size_t>(num_blocks);
    blocks_.resize(count);
    links_.resize(count + 3);
    for (const List list : {List::kFree, List::kOnceUsed, List::kReused})
        links_[static_cast<std::size_t>(head(list))] = {head(list), head(list)};
    for (auto index = static_cast<std::int32_t>(num_blocks); index-- > 0;)
        push_front(base::BlockId(index), List::kFree);
}

BlockPool::~BlockPool() {
    CHECK(num_used() == 0, "a block handle outlives its pool");
}

std::int64_t& BlockPool::count(List list) {
    if (list == List::kFree) return num_free_;
    return list == List::kOnceUsed ? num_once_used_ : num_reused_;
}

std::optional<base::BlockId> BlockPool::as_block(std::int32_t link) const {
    if (link >= num_blocks()) return std::nullopt;
    return base::BlockId(link);
}

const BlockPool::Block& BlockPool::block(base::BlockId id) const {
    CHECK(id.value >= 0 && id.value < num_blocks(), "a block id is outside the pool");
    return blocks_[static_cast<std::size_t>(id.value)];
}

BlockPool::Block& BlockPool::block(base::BlockId id) {
    CHECK(id.value >= 0 && id.value < num_blocks(), "a block id is outside the pool");
    return blocks_[static_cast<std::size_t>(id.value)];
}

std::optional<base::BlockId> BlockPool::first_free() const {
    return as_block(links_[static_cast<std::size_t>(head(List::kFree))].next);
}

std::optional<base::BlockId> BlockPool::next_free(base::BlockId id) const {
    CHECK(is_free(id), "the block is not free");
    return as_block(links_[static_cast<std::size_t>(id.value)].next);
}

std::optional<base::BlockId> BlockPool::first_cached() const {
    if (num_once_used_ > 0)
        return as_block(links_[static_cast<std::size_t>(head(List::kOnceUsed))].next);
    return as_block(links_[static_cast<std::size_t>(head(List::kReused))].next);
}

std::optional<base::BlockId> BlockPool::next_cached(base::BlockId id) const {
    CHECK(is_cached(id), "the block is not cached");
    const auto next = as_block(links_[static_cast<std::size_t>(id.value)].next);
    if (next || block(id).list == List::kReused) return next;
    return as_block(links_[static_cast<std::size_t>(head(List::kReused))].next);
}

std::optional<BlockHandle> BlockPool::take() {
    const std::optional<base::BlockId> first = first_free();
    if (!first) return std::nullopt;
    return take(*first);
}

BlockHandle BlockPool::take(base::BlockId id) {
    CHECK(is_free(id), "the block is not free");
    unlink(id);
    block(id).references = 1;
    return BlockHandle(*this, id);
}

BlockHandle BlockPool::share(const BlockHandle& handle) {
    CHECK(handle.holds_block() && handle.pool_ == this, "the handle is not of this pool");
    return share(handle.id_);
}

BlockHandle BlockPool::share(base::BlockId id) {
    CHECK(!is_free(id), "a free block has no content to share");
    if (is_cached(id)) unlink(id);
    ++block(id).references;
    return BlockHandle(*this, id);
}

void BlockPool::keep(base::BlockId id) {
    CHECK(block(id).references > 0 && !block(id).is_kept, "the block cannot be kept");
    block(id).is_kept = true;
    block(id).is_reused = false;
}

void BlockPool::forget(base::BlockId id) {
    CHECK(is_kept(id), "the block is not kept");
    block(id).is_kept = false;
    if (!is_cached(id)) return;
    unlink(id);
    push_front(id, List::kFree);
}

void BlockPool::mark_reused(base::BlockId id) {
    CHECK(is_kept(id), "the block is not kept");
    block(id).is_reused = true;
    touch(id);
}

void BlockPool::touch(base::BlockId id) {
    if (!is_cached(id)) return;
    unlink(id);
    cache(id);
}

bool BlockPool::is_free(base::BlockId id) const {
    return block(id).list == List::kFree;
}

bool BlockPool::is_cached(base::BlockId id) const {
    return block(id).list == List::kOnceUsed || block(id).list == List::kReused;
}

bool BlockPool::is_kept(base::BlockId id) const {
    return block(id).is_kept;
}

std::int32_t BlockPool::num_references(base::BlockId id) const {
    return block(id).references;
}

void BlockPool::unlink(base::BlockId id) {
    const Link link = links_[static_cast<std::size_t>(id.value)];
    links_[static_cast<std::size_t>(link.previous)].next = link.next;
    links_[static_cast<std::size_t>(link.next)].previous = link.previous;
    --count(block(id).list);
    block(id).list = List::kNone;
}

void BlockPool::link(base::BlockId id, List list, std::int32_t previous) {
    Link& before = links_[static_cast<std::size_t>(previous)];
    links_[static_cast<std::size_t>(id.value)] = {previous, before.next};
    links_[static_cast<std::size_t>(before.next)].previous = id.value;
    before.next = id.value;
    ++count(list);
    block(id).list = list;
}

void BlockPool::push_back(base::BlockId id, List list) {
    link(id, list, links_[static_cast<std::size_t>(head(list))].previous);
}

// Oldest first in either list. What the reused ones have too many of is their oldest, which goes
// behind the newest of the others: still in the order in which both were released.
void BlockPool::cache(base::BlockId id) {
    push_back(id, block(id).is_reused ? List::kReused : List::kOnceUsed);
    if (num_reused_ <= num_blocks() - num_blocks() / 4) return;
    const base::BlockId oldest(links_[static_cast<std::size_t>(head(List::kReused))].next);
    unlink(oldest);
    block(oldest).is_reused = false;
    push_back(oldest, List::kOnceUsed);
}

void BlockPool::release(base::BlockId id) {
    Block& released = block(id);
    CHECK(released.references > 0, "a free block was given back");
    if (--released.references > 0) return;
    if (released.is_kept) {
        cache(id);
    } else {
        push_front(id, List::kFree);
    }
}

std::int64_t BlockPool::count_list(List list) const {
    std::int64_t listed = 0;
    std::int32_t previous = head(list);
    for (std::int32_t at = links_[static_cast<std::size_t>(previous)].next; at != head(list);
         at = links_[static_cast<std::size_t>(at)].next) {
        CHECK(links_[static_cast<std::size_t>(at)].previous == previous, "a list's links disagree");
        CHECK(block(base::BlockId(at)).list == list, "a block is in the wrong list");
        CHECK(++listed <= num_blocks(), "a list runs in a circle");
        previous = at;
    }
    return listed;
}

void BlockPool::check_invariants() const {
    CHECK(count_list(List::kFree) == num_free_ && count_list(List::kOnceUsed) == num_once_used_ &&
              count_list(List::kReused) == num_reused_,
          "a list's length is wrong");
    std::int64_t referenced = 0;
    for (const Block& block : blocks_) {
        CHECK((block.references > 0) == (block.list == List::kNone),
              "a block is in a list and referenced, or neither");
        CHECK(block.list != List::kFree || !block.is_kept, "a free block is kept");
        CHECK(block.list == List::kFree || block.list == List::kNone || block.is_kept,
              "a cached block is not kept");
        referenced += block.references > 0 ? 1 : 0;
    }
    CHECK(referenced == num_used(), "free, cached and used blocks do not add up");
}

}  // namespace pagoda::kv
