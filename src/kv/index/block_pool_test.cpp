#include "kv/index/block_pool.h"

#include <random>
#include <set>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

namespace pagoda::kv {
namespace {

using base::BlockId;

static_assert(!std::is_copy_constructible_v<BlockHandle> &&
              !std::is_copy_assignable_v<BlockHandle>);

std::vector<std::int32_t> free_order(const BlockPool& pool) {
    std::vector<std::int32_t> order;
    for (auto id = pool.first_free(); id; id = pool.next_free(*id)) order.push_back(id->value);
    return order;
}

TEST(BlockPool, GivesBlocksInTheOrderItShows) {
    BlockPool pool(5);
    EXPECT_EQ(free_order(pool), (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
    std::vector<BlockHandle> handles;
    for (const std::int32_t expected : free_order(pool)) {
        handles.push_back(*pool.take());
        EXPECT_EQ(handles.back().id().value, expected);
    }
    EXPECT_FALSE(pool.take().has_value());
    EXPECT_EQ(pool.num_used(), 5);
    // What was freed last is given first.
    handles[1].reset();
    handles[3].reset();
    EXPECT_EQ(free_order(pool), (std::vector<std::int32_t>{3, 1}));
    handles.clear();
    EXPECT_EQ(pool.num_free(), 5);
}

TEST(BlockPool, TakesANamedBlockFromAnywhereInTheList) {
    BlockPool pool(4);
    const BlockHandle middle = pool.take(BlockId(2));
    EXPECT_EQ(free_order(pool), (std::vector<std::int32_t>{0, 1, 3}));
    EXPECT_FALSE(pool.is_free(BlockId(2)));
    EXPECT_DEATH((void)pool.take(BlockId(2)), "the block is not free");
    EXPECT_DEATH((void)pool.take(BlockId(4)), "outside the pool");
    EXPECT_DEATH((void)pool.take(BlockId(-1)), "outside the pool");
}

TEST(BlockPool, ASharedBlockIsFreeWhenItsLastHandleGoes) {
    BlockPool pool(2);
    BlockHandle first = *pool.take();
    const BlockId id = first.id();
    BlockHandle second = pool.share(first);
    EXPECT_EQ(pool.num_references(id), 2);
    first.reset();
    EXPECT_EQ(pool.num_references(id), 1);
    EXPECT_EQ(pool.num_used(), 1);
    second = BlockHandle();
    EXPECT_TRUE(pool.is_free(id));
}

TEST(BlockPool, MovedHandlesGiveBackOnce) {
    BlockPool pool(3);
    BlockHandle a = *pool.take();
    BlockHandle b = std::move(a);
    EXPECT_FALSE(a.holds_block());  // NOLINT: the state after a move is what is tested
    BlockHandle c = *pool.take();
    c = std::move(b);
    EXPECT_EQ(pool.num_used(), 1);
    c.reset();
    c.reset();
    EXPECT_EQ(pool.num_free(), 3);
    pool.check_invariants();
}

TEST(BlockPool, RandomUseKeepsTheBooks) {
    std::mt19937 random(2);
    BlockPool pool(40);
    std::vector<BlockHandle> handles;
    for (int step = 0; step < 20000; ++step) {
        const std::size_t pick = handles.empty() ? 0 : random() % handles.size();
        switch (random() % 4) {
            case 0:
                if (std::optional<BlockHandle> handle = pool.take())
                    handles.push_back(*std::move(handle));
                break;
            case 1: {
                const BlockId id(static_cast<std::int32_t>(random() % 40));
                if (pool.is_free(id)) handles.push_back(pool.take(id));
                break;
            }
            case 2:
                if (!handles.empty() && handles.size() < 200)
                    handles.push_back(pool.share(handles[pick]));
                break;
            default:
                if (handles.empty()) break;
                std::swap(handles[pick], handles.back());
                handles.pop_back();
        }
        if (step % 100 != 0) continue;
        pool.check_invariants();
        std::set<std::int32_t> held;
        for (const BlockHandle& handle : handles) held.insert(handle.id().value);
        EXPECT_EQ(std::ssize(held), pool.num_used());
    }
    handles.clear();
    EXPECT_EQ(pool.num_free(), 40);
    pool.check_invariants();
}

TEST(BlockPool, AKeptBlockIsCachedUntilItIsForgotten) {
    BlockPool pool(4);
    BlockHandle first = *pool.take();
    BlockHandle second = *pool.take();
    pool.keep(first.id());
    const BlockId id = first.id();
    first.reset();
    second.reset();
    EXPECT_EQ(pool.num_free(), 3);
    EXPECT_EQ(pool.num_cached(), 1);
    EXPECT_EQ(pool.num_used(), 0);
    EXPECT_EQ(pool.first_cached(), id);
    EXPECT_DEATH((void)pool.take(id), "the block is not free");
    first = pool.share(id);
    EXPECT_EQ(pool.num_cached(), 0);
    EXPECT_EQ(pool.num_used(), 1);
    first.reset();
    pool.forget(id);
    EXPECT_EQ(pool.num_free(), 4);
    pool.check_invariants();
}

TEST(BlockPool, ShowsCachedBlocksInTheOrderOfTheirLastUseTheReusedOnesLast) {
    BlockPool pool(6);
    std::vector<BlockHandle> handles;
    for (int i = 0; i < 5; ++i) {
        handles.push_back(*pool.take());
        pool.keep(handles.back().id());
    }
    pool.mark_reused(BlockId(1));
    for (const std::size_t i : {1U, 4U, 0U, 3U, 2U}) handles[i].reset();
    std::vector<std::int32_t> order;
    for (auto id = pool.first_cached(); id; id = pool.next_cached(*id)) order.push_back(id->value);
    EXPECT_EQ(order, (std::vector<std::int32_t>{4, 0, 3, 2, 1}));
    pool.touch(BlockId(4));
    EXPECT_EQ(pool.first_cached(), BlockId(0));
    // Reused ones take three quarters at most; the oldest of them goes behind the others.
    for (const std::int32_t id : {4, 0, 3, 2}) pool.mark_reused(BlockId(id));
    EXPECT_EQ(pool.first_cached(), BlockId(1));
    pool.check_invariants();
}

TEST(BlockPool, AHandleThatOutlivesItsPoolIsCaught) {
    EXPECT_DEATH(
        {
            BlockHandle handle;
            BlockPool pool(1);
            handle = *pool.take();
        },
        "a block handle outlives its pool");
}

}  // namespace
}  // namespace pagoda::kv
