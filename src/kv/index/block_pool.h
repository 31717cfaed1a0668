#pragma once
// BlockPool: which KV blocks of one group are free and how many tables hold each of the others.
// Ids only; the memory is kv/store's. A block is any free one: nothing needs neighbours, so nothing
// fragments. Free blocks form a list, the block that was freed last in front, and the order is a
// function of the calls alone, so that a plan can name blocks before it takes them.
// Owned by the engine thread; outlives its handles.

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

    [[nodiscard]] std::int64_t num_blocks() const { return std::ssize(references_); }
    [[nodiscard]] std::int64_t num_free() const { return num_free_; }
    [[nodiscard]] std::int64_t num_used() const { return num_blocks() - num_free_; }

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

    [[nodiscard]] bool is_free(base::BlockId id) const;
    [[nodiscard]] std::int32_t num_references(base::BlockId id) const;

    // Every block is free, once in the list, or referenced; the counts add up.
    void check_invariants() const;

  private:
    friend class BlockHandle;
    // A link of the free list; index num_blocks is its head and end.
    struct Link {
        std::int32_t previous = 0;
        std::int32_t next = 0;
    };

    [[nodiscard]] std::int32_t list_head() const { return static_cast<std::int32_t>(num_blocks()); }
    [[nodiscard]] std::optional<base::BlockId> as_block(std::int32_t link) const;
    void check_id(base::BlockId id) const;
    void unlink(std::int32_t index);
    void push_front(std::int32_t index);
    void release(base::BlockId id);

    std::vector<std::int32_t> references_;  // by block; 0: free
    std::vector<Link> links_;
    std::int64_t num_free_ = 0;
};

}  // namespace pagoda::kv
