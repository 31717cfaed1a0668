#include "kv/index/prefix_index.h"

#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "kv/index/block_table.h"
#include "kv/index/prefix_world_for_test.h"

namespace pagoda::kv {
namespace {

using base::BlockId;
using base::TokenId;

std::vector<TokenId> counting(std::int64_t count, TokenId first = 0) {
    std::vector<TokenId> tokens(static_cast<std::size_t>(count));
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
}

// One group, or two of which the second has a window of 40 tokens.
class Cache {
  public:
    explicit Cache(std::int64_t num_blocks = 16, std::vector<std::int64_t> windows = {0})
        : windows_(std::move(windows)), hasher_(base::HashKey({})) {
        for (std::size_t group = 0; group < windows_.size(); ++group)
            pools_.emplace_back(num_blocks);
        index_.emplace(pools_, windows_);
    }

    [[nodiscard]] TokenChain chain(std::vector<TokenId> tokens, std::string scope = "a") const {
        auto shared = std::make_shared<const std::vector<TokenId>>(std::move(tokens));
        return TokenChain(
            std::make_shared<const PromptKeys>(hasher_.keys(std::move(scope), std::move(shared))));
    }

    [[nodiscard]] PrefixMatch match(const TokenChain& tokens) const {
        return index_->match(tokens, tokens.num_tokens() - 1, {});
    }

    // Computes the whole of it and goes, its last tokens published too. The blocks of group 0.
    std::vector<BlockId> run(const TokenChain& tokens) {
        const PrefixMatch match = this->match(tokens);
        std::vector<BlockTable> tables(pools_.size());
        for (std::size_t group = 0; group < pools_.size(); ++group) {
            tables[group].start_at(match.groups[group].first_index);
            for (const BlockId id : match.groups[group].blocks)
                tables[group].append(pools_[group].share(id));
        }
        PrefixCursor cursor = index_->start(tokens, match);
        for (std::size_t group = 0; group < pools_.size(); ++group) {
            while (tables[group].num_blocks() < blocks_for(tokens.num_tokens()))
                tables[group].append(take(group));
        }
        for (std::int64_t index = match.num_blocks; index < tokens.num_full_blocks(); ++index) {
            std::vector<std::optional<BlockId>> blocks(tables.size());
            for (std::size_t group = 0; group < tables.size(); ++group)
                blocks[group] = tables[group].at(index);
            for (const auto& [group, block] : index_->publish(cursor, tokens, blocks)) {
                const auto at = static_cast<std::size_t>(group);
                tables[at].replace(index, pools_[at].share(block));
            }
        }
        if (tokens.num_tokens() % kBlockTokens != 0) {
            std::vector<BlockId> last(tables.size());
            for (std::size_t group = 0; group < tables.size(); ++group)
                last[group] = tables[group].at(tokens.num_full_blocks());
            index_->publish_partial(cursor, tokens, tokens.num_tokens() % kBlockTokens, last);
        }
        std::vector<BlockId> ids;
        for (std::int64_t i = 0; i < tables[0].num_blocks(); ++i) ids.push_back(tables[0].at(i));
        return ids;
    }

    BlockHandle take(std::size_t group) {
        if (pools_[group].num_free() == 0) index_->evict(group, *pools_[group].first_cached());
        return *pools_[group].take();
    }

    PrefixIndex& index() { return *index_; }
    BlockPool& pool(std::size_t group) { return pools_[group]; }
    void check() const {
        for (const BlockPool& pool : pools_) pool.check_invariants();
        index_->check_invariants();
    }

  private:
    std::vector<std::int64_t> windows_;
    PrefixHasher hasher_;
    std::deque<BlockPool> pools_;
    std::optional<PrefixIndex> index_;
};

TEST(PrefixIndex, FindsTheLongestPrefixAndLeavesOneTokenToCompute) {
    Cache cache;
    const std::vector<BlockId> blocks = cache.run(cache.chain(counting(100)));
    for (const std::int64_t length : {33, 63, 64, 65, 95, 96, 97, 100}) {
        SCOPED_TRACE(length);
        const PrefixMatch match = cache.match(cache.chain(counting(length)));
        EXPECT_EQ(match.num_blocks, (length - 1) / 32);
        // The rest of the block is copied, down to four tokens.
        const std::int64_t rest = (length - 1) % 32;
        EXPECT_EQ(match.num_copied, rest >= 4 ? rest : 0);
        EXPECT_EQ(match.groups[0].blocks,
                  std::vector<BlockId>(blocks.begin(), blocks.begin() + match.num_blocks));
        if (match.num_copied > 0) {
            EXPECT_EQ(match.copied_from[0], blocks[static_cast<std::size_t>(match.num_blocks)]);
        }
    }
    cache.check();
}

TEST(PrefixIndex, OneOtherTokenEndsTheMatchThere) {
    Cache cache;
    cache.run(cache.chain(counting(128)));
    for (const std::size_t other : {0U, 31U, 32U, 63U, 64U, 80U}) {
        SCOPED_TRACE(other);
        std::vector<TokenId> tokens = counting(128);
        tokens[other] = 777;
        const PrefixMatch match = cache.match(cache.chain(tokens));
        EXPECT_EQ(match.num_blocks, static_cast<std::int64_t>(other / 32));
        EXPECT_EQ(match.num_copied, other % 32 >= 4 ? static_cast<std::int64_t>(other % 32) : 0);
    }
}

TEST(PrefixIndex, ScopesNeverShareAndFieldsNeverRunTogether) {
    Cache cache;
    const auto scope = [](PrefixScope fields) { return scope_bytes(fields); };
    const std::vector<std::string> scopes = {
        scope({"m", "", base::ClientId(1), ""}),  scope({"m", "", base::ClientId(2), ""}),
        scope({"m", "x", base::ClientId(1), ""}), scope({"m", "", base::ClientId(1), "x"}),
        scope({"mx", "", base::ClientId(1), ""}), scope({"", "m", base::ClientId(1), ""}),
    };
    for (const std::string& one : scopes) {
        EXPECT_EQ(cache.match(cache.chain(counting(70), one)).num_tokens(), 0);
        cache.run(cache.chain(counting(70), one));
        EXPECT_EQ(cache.match(cache.chain(counting(70), one)).num_tokens(), 69);
        cache.index().clear();
    }
    cache.run(cache.chain(counting(70), scopes[0]));
    for (std::size_t i = 1; i < scopes.size(); ++i)
        EXPECT_EQ(cache.match(cache.chain(counting(70), scopes[i])).num_tokens(), 0);
}

// Whoever could make two prompts collide must neither get the other's blocks nor push them out.
TEST(PrefixIndex, EqualHashesOfOtherTokensAreNoHit) {
    Cache cache;
    const TokenChain honest = cache.chain(counting(70));
    cache.run(honest);
    for (const bool is_scope_equal : {true, false}) {
        PromptKeys forged = honest.prompt();
        if (is_scope_equal)
            forged.tokens = std::make_shared<const std::vector<TokenId>>(counting(70, 1000));
        else
            forged.scope = "b";
        const TokenChain evil(std::make_shared<const PromptKeys>(forged));
        EXPECT_EQ(cache.match(evil).num_tokens(), 0);
        cache.run(evil);
        cache.check();
        EXPECT_EQ(cache.match(evil).num_blocks, 0);
        EXPECT_EQ(cache.match(honest).num_tokens(), 69);
    }
}

TEST(PrefixIndex, AWindowNeedsItsLastBlocksAlone) {
    Cache cache(16, {0, 40});
    const TokenChain tokens = cache.chain(counting(160));
    cache.run(tokens);
    const PrefixMatch match = cache.match(cache.chain(counting(129)));
    EXPECT_EQ(match.num_blocks, 4);
    EXPECT_EQ(match.groups[0].blocks.size(), 4U);
    // Position 128 looks back to 89, in block 2.
    EXPECT_EQ(match.groups[1].first_index, 2);
    EXPECT_EQ(match.groups[1].blocks.size(), 2U);
}

TEST(PrefixIndex, GroupsAgreeOnTheLengthThatAllCanGoOnFrom) {
    Cache cache(16, {0, 40});
    std::vector<BlockTable> tables(2);
    const TokenChain tokens = cache.chain(counting(192));
    PrefixCursor cursor = cache.index().start(tokens, cache.match(tokens));
    for (BlockTable& table : tables) {
        const auto group = static_cast<std::size_t>(&table - tables.data());
        for (int i = 0; i < 6; ++i) table.append(cache.take(group));
    }
    // The window's blocks 3 and 4 were gone before they could be published.
    for (std::int64_t index = 0; index < 6; ++index) {
        std::vector<std::optional<BlockId>> blocks = {tables[0].at(index), tables[1].at(index)};
        if (index == 3 || index == 4) blocks[1].reset();
        static_cast<void>(cache.index().publish(cursor, tokens, blocks));
    }
    EXPECT_EQ(cache.match(cache.chain(counting(192))).num_blocks, 3);  // 5 would need block 4
    EXPECT_EQ(cache.match(cache.chain(counting(65))).num_blocks, 2);
    cache.check();
}

TEST(PrefixIndex, EvictsLeavesFirstAndTheLongestUnusedOfThem) {
    Cache cache(8);
    cache.run(cache.chain(counting(128)));       // a: 4 blocks
    cache.run(cache.chain(counting(128, 500)));  // b: 4 blocks
    cache.run(cache.chain(counting(128)));       // a again
    const BlockHandle one = cache.take(0);
    const BlockHandle two = cache.take(0);
    EXPECT_EQ(cache.match(cache.chain(counting(128, 500))).num_blocks, 2);
    EXPECT_EQ(cache.match(cache.chain(counting(129))).num_blocks, 4);
    cache.check();
}

TEST(PrefixIndex, WhatIsHitAgainAndAgainOutlivesWhatIsSeenOnce) {
    Cache cache(16);
    for (int i = 0; i < 4; ++i) cache.run(cache.chain(counting(65)));
    // Far more than the cache holds passes through.
    for (int i = 1; i <= 30; ++i) cache.run(cache.chain(counting(96, 1000 * i)));
    EXPECT_EQ(cache.match(cache.chain(counting(65))).num_blocks, 2);
    cache.check();
}

TEST(PrefixIndex, WhatWasPopularOnceGoesInTheEnd) {
    Cache cache(16);
    // Everything here is hit three times; the first of them must go, and the last must stay.
    for (int set = 0; set < 8; ++set) {
        for (int i = 0; i < 4; ++i) cache.run(cache.chain(counting(96, 1000 * set)));
    }
    EXPECT_EQ(cache.match(cache.chain(counting(96))).num_blocks, 0);
    EXPECT_EQ(cache.match(cache.chain(counting(96, 7000))).num_blocks, 2);
    // And a newcomer finds room.
    cache.run(cache.chain(counting(96, 9000)));
    EXPECT_EQ(cache.match(cache.chain(counting(96, 9000))).num_blocks, 2);
    cache.check();
}

TEST(PrefixIndex, TwoThatComputeTheSameEndWithOneBlock) {
    Cache cache;
    const TokenChain tokens = cache.chain(counting(40));
    BlockHandle mine = cache.take(0);
    BlockHandle other = cache.take(0);
    PrefixCursor first = cache.index().start(tokens, cache.match(tokens));
    PrefixCursor second = cache.index().start(tokens, cache.match(tokens));
    const std::vector<std::optional<BlockId>> of_first = {mine.id()};
    const std::vector<std::optional<BlockId>> of_second = {other.id()};
    EXPECT_TRUE(cache.index().publish(first, tokens, of_first).empty());
    const auto replaced = cache.index().publish(second, tokens, of_second);
    ASSERT_EQ(replaced.size(), 1U);
    EXPECT_EQ(replaced[0].block, mine.id());
    other = cache.pool(0).share(replaced[0].block);
    EXPECT_EQ(cache.pool(0).num_used(), 1);
    cache.check();
}

TEST(PrefixIndex, AResetForgetsAllButWhatIsInUse) {
    Cache cache;
    cache.run(cache.chain(counting(64)));
    const TokenChain tokens = cache.chain(counting(40, 500));
    PrefixCursor cursor = cache.index().start(tokens, cache.match(tokens));
    const BlockHandle held = cache.take(0);
    const std::vector<std::optional<BlockId>> blocks = {held.id()};
    static_cast<void>(cache.index().publish(cursor, tokens, blocks));
    cache.index().clear();
    EXPECT_FALSE(cursor.is_attached());
    EXPECT_EQ(cache.pool(0).num_cached(), 0);
    EXPECT_EQ(cache.pool(0).num_used(), 1);
    EXPECT_EQ(cache.match(cache.chain(counting(64))).num_tokens(), 0);
    EXPECT_EQ(cache.match(tokens).num_tokens(), 0);
    // A detached cursor publishes nothing.
    const TokenChain longer = cache.chain(counting(64, 500));
    EXPECT_TRUE(cache.index().publish(cursor, longer, blocks).empty());
    cache.check();
}

TEST(PrefixIndex, AnswersAreFoundAsPromptsAre) {
    Cache cache;
    const PrefixHasher hasher(base::HashKey({}));
    TokenChain grown = cache.chain(counting(20));
    for (TokenId token = 20; token < 100; ++token) grown.append(token, hasher);
    ASSERT_EQ(grown.num_full_blocks(), 3);
    cache.run(grown);
    EXPECT_EQ(cache.match(cache.chain(counting(120))).num_tokens(), 100);
}

TEST(PrefixIndex, ALongerPartialBlockTakesTheShorterOnesPlace) {
    Cache cache;
    cache.run(cache.chain(counting(40)));
    EXPECT_EQ(cache.pool(0).num_cached(), 2);
    cache.run(cache.chain(counting(50)));
    cache.run(cache.chain(counting(64)));
    EXPECT_EQ(cache.pool(0).num_cached(), 2);
    cache.check();
}

TEST(PrefixIndex, ManyScopesWithLittleInEachMakeRoomForMore) {
    constexpr int kScopes = 6000;  // two nodes each, and blocks for more than that
    Cache cache(8000);
    for (int scope = 0; scope < kScopes; ++scope)
        cache.run(cache.chain(counting(32), std::to_string(scope)));
    EXPECT_LE(cache.index().num_nodes(), cache.index().max_nodes());
    EXPECT_EQ(cache.match(cache.chain(counting(33), "0")).num_blocks, 0);
    EXPECT_EQ(cache.match(cache.chain(counting(33), std::to_string(kScopes - 1))).num_blocks, 1);
    cache.check();
}

// Any order of events keeps every invariant, and every block that is given holds exactly the tokens
// that it is given for.
void run_world(const std::vector<PrefixWorld::Group>& groups) {
    std::int64_t found = 0;
    std::int64_t copied = 0;
    std::int64_t replaced = 0;
    std::int64_t evicted = 0;
    for (unsigned seed = 0; seed < 12; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        PrefixWorld world(groups, [&](std::int64_t low, std::int64_t high) {
            return low +
                   static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
        });
        for (int step = 0; step < 600; ++step) world.step();
        world.finish();
        found += world.num_found();
        copied += world.num_copied();
        replaced += world.num_replaced();
        evicted += world.num_evicted();
    }
    // Nothing of it is idle.
    EXPECT_GT(found, 5000);
    EXPECT_GT(copied, 300);
    EXPECT_GT(replaced, 20);
    EXPECT_GT(evicted, 200);
}

TEST(PrefixIndexProperty, OneGroup) {
    run_world({{.num_blocks = 18, .window = 0}});
}

TEST(PrefixIndexProperty, AGroupWithAWindowBesideIt) {
    run_world({{.num_blocks = 22, .window = 0}, {.num_blocks = 14, .window = 50}});
}

TEST(PrefixIndexProperty, TwoGroupsOfFullAttentionAndATinyWindow) {
    run_world({{.num_blocks = 20, .window = 0},
               {.num_blocks = 24, .window = 0},
               {.num_blocks = 12, .window = 1}});
}

TEST(PrefixIndexProperty, WindowsAlone) {
    run_world({{.num_blocks = 14, .window = 70}, {.num_blocks = 12, .window = 20}});
}

}  // namespace
}  // namespace pagoda::kv
