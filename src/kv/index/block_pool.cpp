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
    CHECK(num_blocks >= 0 && num_blocks < std::numeric_limits<std::int32_t>::max(),
          "the number of blocks does not fit an id");
    const auto count = static_cast<std::size_t>(num_blocks);
    references_.resize(count);
    links_.resize(count + 1);
    links_[count] = {list_head(), list_head()};
    for (std::int32_t index = list_head(); index-- > 0;) push_front(index);
}

BlockPool::~BlockPool() {
    CHECK(num_used() == 0, "a block handle outlives its pool");
}

std::optional<base::BlockId> BlockPool::as_block(std::int32_t link) const {
    if (link == list_head()) return std::nullopt;
    return base::BlockId(link);
}

void BlockPool::check_id(base::BlockId id) const {
    CHECK(id.value >= 0 && id.value < list_head(), "a block id is outside the pool");
}

std::optional<base::BlockId> BlockPool::first_free() const {
    return as_block(links_[static_cast<std::size_t>(list_head())].next);
}

std::optional<base::BlockId> BlockPool::next_free(base::BlockId id) const {
    CHECK(is_free(id), "the block is not free");
    return as_block(links_[static_cast<std::size_t>(id.value)].next);
}

std::optional<BlockHandle> BlockPool::take() {
    const std::optional<base::BlockId> first = first_free();
    if (!first) return std::nullopt;
    return take(*first);
}

BlockHandle BlockPool::take(base::BlockId id) {
    CHECK(is_free(id), "the block is not free");
    unlink(id.value);
    references_[static_cast<std::size_t>(id.value)] = 1;
    return BlockHandle(*this, id);
}

BlockHandle BlockPool::share(const BlockHandle& handle) {
    CHECK(handle.holds_block() && handle.pool_ == this, "the handle is not of this pool");
    ++references_[static_cast<std::size_t>(handle.id_.value)];
    return BlockHandle(*this, handle.id_);
}

bool BlockPool::is_free(base::BlockId id) const {
    return num_references(id) == 0;
}

std::int32_t BlockPool::num_references(base::BlockId id) const {
    check_id(id);
    return references_[static_cast<std::size_t>(id.value)];
}

void BlockPool::unlink(std::int32_t index) {
    const Link link = links_[static_cast<std::size_t>(index)];
    links_[static_cast<std::size_t>(link.previous)].next = link.next;
    links_[static_cast<std::size_t>(link.next)].previous = link.previous;
    --num_free_;
}

void BlockPool::push_front(std::int32_t index) {
    Link& head = links_[static_cast<std::size_t>(list_head())];
    links_[static_cast<std::size_t>(index)] = {list_head(), head.next};
    links_[static_cast<std::size_t>(head.next)].previous = index;
    head.next = index;
    ++num_free_;
}

void BlockPool::release(base::BlockId id) {
    std::int32_t& references = references_[static_cast<std::size_t>(id.value)];
    CHECK(references > 0, "a free block was given back");
    if (--references == 0) push_front(id.value);
}

void BlockPool::check_invariants() const {
    std::int64_t listed = 0;
    std::int32_t previous = list_head();
    for (std::optional<base::BlockId> id = first_free(); id; id = next_free(*id)) {
        CHECK(links_[static_cast<std::size_t>(id->value)].previous == previous,
              "the free list's links disagree");
        CHECK(++listed <= num_blocks(), "the free list runs in a circle");
        previous = id->value;
    }
    std::int64_t unreferenced = 0;
    for (const std::int32_t references : references_) unreferenced += references == 0 ? 1 : 0;
    CHECK(listed == num_free_ && unreferenced == num_free_, "free and used blocks do not add up");
}

}  // namespace pagoda::kv
