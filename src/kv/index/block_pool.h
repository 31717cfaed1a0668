#pragma once
// BlockPool: which KV blocks of one group are free, how many tables hold each of the others, and
// which are cached: held by nobody, their content kept for who comes next. Ids only; the memory is
// kv/store's. Nothing needs neighbours, so nothing fragments. Free and cached blocks form lists
// whose order is a function of the calls alone, so that a plan can name blocks before it takes
// them. Owned by the engine thread; outlives its handles.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"

namespace pagoda::kv {

// Tokens of a block, in every kernel variant.
inline constexpr std::int64_t kBlockTokens = 32;

[[nodiscard]] constexpr std::int64_t blocks_for(std::int64_t tokens) {
    return (tokens + kBlockTokens - 1) / kBlockTokens;
}

// The first block that position `position` and those after it still read, for a window of that many
// tokens (0: all).
[[nodiscard]] constexpr std::int64_t first_block_needed(std::int64_t position,
                                                        std::int64_t window) {
    if (window == 0 || position < window) return 0;
    return (position - window + 1) / kBlockTokens;
}

class BlockPool;

// One reference to a block; gives it back on destruction.
class BlockHandle final {
  public:
    BlockHandle() = default;
    ~BlockHandle() { reset(); }
    BlockHandle(BlockHandle&& other) noexcept;
    BlockHandle& operator=(BlockHandle&& other) noexcept;
    BlockHandle(const BlockHandle&) = delete;
    BlockHandle& operator=(const BlockHandle&) = delete;

    [[nodiscard]] bool holds_block() const { return pool_ != nullptr; }
    // REQUIRES: holds_block()
    [[nodiscard]] base::BlockId id() const;
    void reset();

  private:
    friend class BlockPool;
    BlockHandle(BlockPool& pool, base::BlockId id) : pool_(&pool), id_(id) {}

    BlockPool* pool_ = nullptr;  // outlives every handle
    base::BlockId id_;
};

class BlockPool final {
  public:
    explicit BlockPool(std::int64_t num_blocks);
    ~BlockPool();
    BlockPool(const BlockPool&) = delete;
    BlockPool& operator=(const BlockPool&) = delete;

    [[nodiscard]] std::int64_t num_blocks() const { return std::ssize(blocks_); }
    [[nodiscard]] std::int64_t num_free() const { return num_free_; }
    [[nodiscard]] std::int64_t num_cached() const { return num_once_used_ + num_reused_; }
    [[nodiscard]] std::int64_t num_used() const { return num_blocks() - num_free_ - num_cached(); }

    // Planning: the free blocks in the order in which take() would give them.
    [[nodiscard]] std::optional<base::BlockId> first_free() const;
    // REQUIRES: `id` is free.
    [[nodiscard]] std::optional<base::BlockId> next_free(base::BlockId id) const;

    // The first free block, or nothing when there is none.
    [[nodiscard]] std::optional<BlockHandle> take();
    // Exactly this one. REQUIRES: it is free.
    [[nodiscard]] BlockHandle take(base::BlockId id);
    // A second reference to the same block.
    [[nodiscard]] BlockHandle share(const BlockHandle& handle);
    // One more reference to a block that is referenced, or the first to one that is cached.
    [[nodiscard]] BlockHandle share(base::BlockId id);

    // What the prefix index says of a block's content. A kept block is cached, not free, once its
    // last reference has gone. REQUIRES: it is referenced.
    void keep(base::BlockId id);
    // Its content is worth nothing any more: a cached block is free now. REQUIRES: is_kept().
    void forget(base::BlockId id);
    // Content that was found again more than once is evicted after all that was not. REQUIRES:
    // is_kept().
    void mark_reused(base::BlockId id);
    // A cached block becomes the last of its list. Nothing happens to others.
    void touch(base::BlockId id);
    // The cached blocks in the order in which they should go: those that were not reused, longest
    // unused first, then the reused ones. Reused ones beyond three quarters of the pool queue with
    // the others, so that what was once popular goes in the end.
    [[nodiscard]] std::optional<base::BlockId> first_cached() const;
    // REQUIRES: `id` is cached.
    [[nodiscard]] std::optional<base::BlockId> next_cached(base::BlockId id) const;

    [[nodiscard]] bool is_free(base::BlockId id) const;
    [[nodiscard]] bool is_cached(base::BlockId id) const;
    [[nodiscard]] bool is_kept(base::BlockId id) const;
    [[nodiscard]] std::int32_t num_references(base::BlockId id) const;

    // Every block is free, cached or referenced, in its list once; the counts add up.
    void check_invariants() const;

  private:
    friend class BlockHandle;
    // A link of a list; the heads, which are their ends too, come after the blocks.
    struct Link {
        std::int32_t previous = 0;
        std::int32_t next = 0;
    };
    enum class List : std::uint8_t { kNone, kFree, kOnceUsed, kReused };
    struct Block {
        std::int32_t references = 0;
        List list = List::kFree;  // kNone: referenced
        bool is_kept = false;
        bool is_reused = false;
    };

    [[nodiscard]] std::int32_t head(List list) const {
        return static_cast<std::int32_t>(num_blocks()) + static_cast<std::int32_t>(list) - 1;
    }
    [[nodiscard]] std::int64_t& count(List list);
    [[nodiscard]] std::optional<base::BlockId> as_block(std::int32_t link) const;
    [[nodiscard]] const Block& block(base::BlockId id) const;
    [[nodiscard]] Block& block(base::BlockId id);
    void unlink(base::BlockId id);
    void link(base::BlockId id, List list, std::int32_t previous);
    void push_front(base::BlockId id, List list) { link(id, list, head(list)); }
    void push_back(base::BlockId id, List list);
    void cache(base::BlockId id);
    void release(base::BlockId id);
    [[nodiscard]] std::int64_t count_list(List list) const;

    std::vector<Block> blocks_;
    std::vector<Link> links_;
    std::int64_t num_free_ = 0;
    std::int64_t num_once_used_ = 0;  // cached, as are the reused ones
    std::int64_t num_reused_ = 0;
};

}  // namespace pagoda::kv
