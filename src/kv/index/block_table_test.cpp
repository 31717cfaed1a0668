#include "kv/index/block_table.h"

#include <gtest/gtest.h>

namespace pagoda::kv {
namespace {

BlockTable table_of(BlockPool& pool, int num_blocks) {
    BlockTable table;
    for (int i = 0; i < num_blocks; ++i) table.append(*pool.take());
    return table;
}

TEST(BlockTable, IndicesStayWhenTheFrontFallsAway) {
    BlockPool pool(6);
    BlockTable table = table_of(pool, 4);
    table.drop_before(2);
    EXPECT_EQ(table.num_blocks(), 4);
    EXPECT_EQ(table.num_dropped(), 2);
    EXPECT_EQ(table.num_held(), 2);
    EXPECT_EQ(table.at(3).value, 3);
    EXPECT_EQ(pool.num_used(), 2);
    EXPECT_DEATH((void)table.at(1), "holds no block at this index");
    table.drop_before(1);  // already gone
    EXPECT_EQ(table.num_dropped(), 2);
    table.append(*pool.take());
    EXPECT_EQ(table.at(4).value, 1);  // freed last, given first
    EXPECT_EQ(table.num_blocks(), 5);
}

TEST(BlockTable, ClearGivesAllBackLastBlockFirstAndStartsAnew) {
    BlockPool pool(4);
    BlockTable table = table_of(pool, 3);
    table.drop_before(1);
    table.clear();
    EXPECT_EQ(pool.num_free(), 4);
    EXPECT_EQ(table.num_blocks(), 0);
    EXPECT_EQ(pool.first_free()->value, 1);  // 0 fell away first, then 2, then 1
    pool.check_invariants();
}

TEST(BlockTable, MovesLeaveAnEmptyTable) {
    BlockPool pool(4);
    BlockTable first = table_of(pool, 2);
    BlockTable second = table_of(pool, 1);
    second = std::move(first);
    EXPECT_EQ(first.num_blocks(), 0);  // NOLINT: the state after a move is what is tested
    EXPECT_EQ(second.num_blocks(), 2);
    EXPECT_EQ(pool.num_used(), 2);
    const BlockTable third = std::move(second);
    EXPECT_EQ(third.at(1).value, 1);
}

TEST(BlockTable, AForkSharesEveryBlockAndACopyTakesTheLastOnesPlace) {
    BlockPool pool(4);
    BlockTable table;
    for (int i = 0; i < 3; ++i) table.append(*pool.take());
    table.drop_before(1);
    {
        BlockTable fork = table.fork(pool);
        EXPECT_EQ(fork.num_dropped(), 1);
        EXPECT_EQ(fork.at(2), table.at(2));
        EXPECT_EQ(pool.num_references(table.at(2)), 2);
        fork.replace(2, *pool.take());  // the copy, before it writes
        EXPECT_NE(fork.at(2), table.at(2));
        EXPECT_EQ(pool.num_references(table.at(2)), 1);
        EXPECT_EQ(pool.num_references(table.at(1)), 2);
    }
    EXPECT_EQ(pool.num_used(), 2);
}

TEST(BlockTable, CanStartAtAnIndex) {
    BlockPool pool(1);
    BlockTable table;
    table.start_at(7);
    table.append(*pool.take());
    EXPECT_EQ(table.num_blocks(), 8);
    EXPECT_EQ(table.at(7), base::BlockId(0));
}

}  // namespace
}  // namespace pagoda::kv
