#include "kv/index/prefix_world_for_test.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace pagoda::kv {

namespace {

constexpr std::int64_t kPhraseTokens = 8;

std::deque<BlockPool> make_pools(const std::vector<PrefixWorld::Group>& groups) {
    std::deque<BlockPool> pools;
    for (const PrefixWorld::Group& group : groups) pools.emplace_back(group.num_blocks);
    return pools;
}

std::vector<std::int64_t> windows_of(const std::vector<PrefixWorld::Group>& groups) {
    std::vector<std::int64_t> windows;
    windows.reserve(groups.size());
    for (const PrefixWorld::Group& group : groups) windows.push_back(group.window);
    return windows;
}

}  // namespace

PrefixWorld::PrefixWorld(const std::vector<Group>& groups, Choose choose)
    : groups_(groups),
      choose_(std::move(choose)),
      hasher_(base::HashKey({})),
      pools_(make_pools(groups)),
      index_(pools_, windows_of(groups)) {
    for (const Group& group : groups)
        contents_.emplace_back(static_cast<std::size_t>(group.num_blocks));
}

void PrefixWorld::step() {
    const std::int64_t what = choose_(0, 40);
    if (what == 0) {
        index_.clear();
    } else if (what <= 10 && running_.size() < 5) {
        begin();
    } else if (!running_.empty()) {
        const auto which = static_cast<std::size_t>(choose_(0, std::ssize(running_) - 1));
        if (what <= 14 || !advance(running_[which])) end(which);
    }
    check();
}

void PrefixWorld::finish() {
    while (!running_.empty()) end(0);
    check();
    for (const BlockPool& pool : pools_) CHECK(pool.num_used() == 0, "a block is in use");
    index_.clear();
    check();
    for (const BlockPool& pool : pools_)
        CHECK(pool.num_free() == pool.num_blocks(), "a block is left in an empty index");
    CHECK(index_.num_nodes() == 0, "a node is left in an empty index");
}

// Few phrases, so that prefixes come again, and end in the middle of blocks.
void PrefixWorld::begin() {
    auto tokens = std::make_shared<std::vector<base::TokenId>>();
    const std::int64_t length = choose_(1, 170);
    while (std::ssize(*tokens) < length) {
        const std::int64_t phrase = choose_(0, 9) == 0 ? 1 : 0;
        for (std::int64_t i = 0; i < kPhraseTokens && std::ssize(*tokens) < length; ++i)
            tokens->push_back(static_cast<base::TokenId>(phrase * 100 + i));
    }
    std::string scope = scope_bytes({"m", "", base::ClientId(0), choose_(0, 4) == 0 ? "s" : ""});
    auto keys =
        std::make_shared<const PromptKeys>(hasher_.keys(std::move(scope), std::move(tokens)));
    Running sequence{{}, TokenChain(std::move(keys)), 0, {}};
    sequence.tables.resize(pools_.size());
    PrefixMatch match = index_.match(sequence.chain, sequence.chain.num_tokens() - 1, {});
    // The copy needs a block of its own beside those that the match takes.
    if (choose_(0, 1) == 0) match.drop_copy();
    take_over(sequence, match);
    running_.push_back(std::move(sequence));
}

void PrefixWorld::take_over(Running& sequence, const PrefixMatch& match) {
    for (std::size_t group = 0; group < pools_.size(); ++group) {
        sequence.tables[group].start_at(match.groups[group].first_index);
        for (const base::BlockId id : match.groups[group].blocks)
            sequence.tables[group].append(pools_[group].share(id));
    }
    sequence.cursor = index_.start(sequence.chain, match);
    sequence.num_computed = match.num_blocks * kBlockTokens;
    num_found_ += sequence.num_computed;
    if (match.num_copied == 0) return;
    std::vector<BlockHandle> sources;  // hold them, so that no source makes room
    std::vector<BlockHandle> copies;
    for (std::size_t group = 0; group < pools_.size(); ++group)
        sources.push_back(pools_[group].share(match.copied_from[group]));
    for (std::size_t group = 0; group < pools_.size(); ++group) {
        if (!make_room(group)) return;
        copies.push_back(*pools_[group].take());
    }
    for (std::size_t group = 0; group < pools_.size(); ++group) {
        Content content =
            contents_[group][static_cast<std::size_t>(match.copied_from[group].value)];
        content.tokens.resize(static_cast<std::size_t>(match.num_tokens()));
        contents_[group][static_cast<std::size_t>(copies[group].id().value)] = std::move(content);
        sequence.tables[group].append(std::move(copies[group]));
    }
    sequence.num_computed = match.num_tokens();
    num_copied_ += match.num_copied;
}

bool PrefixWorld::make_room(std::size_t group) {
    BlockPool& pool = pools_[group];
    if (pool.num_free() > 0) return true;
    const std::optional<base::BlockId> oldest = pool.first_cached();
    if (!oldest) return false;
    index_.evict(group, *oldest);
    CHECK(pool.is_free(*oldest), "an evicted block is not free");
    ++num_evicted_;
    return true;
}

std::vector<base::TokenId> PrefixWorld::prefix(const Running& sequence, std::int64_t end) const {
    std::vector<base::TokenId> tokens;
    for (std::int64_t index = 0; index < blocks_for(end); ++index) {
        const BlockTokens block = sequence.chain.block(index);
        const std::int64_t count = std::min(kBlockTokens, end - index * kBlockTokens);
        tokens.insert(tokens.end(), block.begin(), block.begin() + count);
    }
    return tokens;
}

void PrefixWorld::write(Running& sequence, std::int64_t position) {
    for (std::size_t group = 0; group < pools_.size(); ++group) {
        const base::BlockId id = sequence.tables[group].at(position / kBlockTokens);
        CHECK(pools_[group].num_references(id) == 1 && !pools_[group].is_kept(id),
              "a shared block is written to");
        contents_[group][static_cast<std::size_t>(id.value)] = {sequence.chain.prompt().scope,
                                                                prefix(sequence, position + 1)};
    }
}

// Computes a few tokens; false when there is no room for them.
bool PrefixWorld::advance(Running& sequence) {
    const std::int64_t behind = sequence.chain.num_tokens() - sequence.num_computed;
    const std::int64_t count = choose_(1, behind);
    for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t position = sequence.num_computed;
        for (std::size_t group = 0; group < pools_.size(); ++group) {
            if (sequence.tables[group].num_blocks() > position / kBlockTokens) continue;
            if (!make_room(group)) return false;
            sequence.tables[group].append(*pools_[group].take());
        }
        write(sequence, position);
        ++sequence.num_computed;
    }
    publish(sequence);
    for (std::size_t group = 0; group < pools_.size(); ++group) {
        BlockTable& table = sequence.tables[group];
        const std::int64_t first = first_block_needed(sequence.num_computed, groups_[group].window);
        table.drop_before(std::min(first, table.num_blocks()));
    }
    if (sequence.num_computed == sequence.chain.num_tokens())
        sequence.chain.append(static_cast<base::TokenId>(choose_(0, 1)), hasher_);
    return true;
}

void PrefixWorld::publish(Running& sequence) {
    while (sequence.cursor.is_attached() &&
           (sequence.cursor.num_blocks() + 1) * kBlockTokens <= sequence.num_computed) {
        const std::int64_t index = sequence.cursor.num_blocks();
        std::vector<std::optional<base::BlockId>> blocks(pools_.size());
        for (std::size_t group = 0; group < pools_.size(); ++group) {
            const BlockTable& table = sequence.tables[group];
            if (index >= table.num_dropped()) blocks[group] = table.at(index);
        }
        for (const auto& [group, block] : index_.publish(sequence.cursor, sequence.chain, blocks)) {
            const auto at = static_cast<std::size_t>(group);
            sequence.tables[at].replace(index, pools_[at].share(block));
            ++num_replaced_;
        }
    }
}

void PrefixWorld::end(std::size_t which) {
    Running& sequence = running_[which];
    publish(sequence);
    const std::int64_t index = sequence.num_computed / kBlockTokens;
    const bool is_whole =
        std::all_of(sequence.tables.begin(), sequence.tables.end(),
                    [&](const BlockTable& table) { return table.num_blocks() == index + 1; });
    if (choose_(0, 2) > 0 && is_whole && sequence.num_computed % kBlockTokens > 0 &&
        sequence.cursor.num_blocks() == index) {
        std::vector<base::BlockId> blocks;
        blocks.reserve(sequence.tables.size());
        for (const BlockTable& table : sequence.tables) blocks.push_back(table.at(index));
        index_.publish_partial(sequence.cursor, sequence.chain,
                               sequence.num_computed % kBlockTokens, blocks);
    }
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(which));
}

// What every block that the sequence still reads holds is what it would have computed.
void PrefixWorld::check_content(const Running& sequence) const {
    for (std::size_t group = 0; group < pools_.size(); ++group) {
        const BlockTable& table = sequence.tables[group];
        for (std::int64_t index = table.num_dropped(); index < table.num_blocks(); ++index) {
            const Content& content =
                contents_[group][static_cast<std::size_t>(table.at(index).value)];
            const std::int64_t end = std::min((index + 1) * kBlockTokens, sequence.num_computed);
            if (end <= index * kBlockTokens) continue;
            CHECK(content.scope == sequence.chain.prompt().scope, "a block of another scope");
            CHECK(std::ssize(content.tokens) >= end, "a block that was not written so far");
            const std::vector<base::TokenId> expected = prefix(sequence, end);
            CHECK(std::equal(expected.begin(), expected.end(), content.tokens.begin()),
                  "a block of other tokens");
        }
    }
}

void PrefixWorld::check() const {
    for (std::size_t group = 0; group < pools_.size(); ++group) {
        pools_[group].check_invariants();
        std::vector<std::int32_t> held(static_cast<std::size_t>(groups_[group].num_blocks));
        for (const Running& sequence : running_) {
            const BlockTable& table = sequence.tables[group];
            for (std::int64_t i = table.num_dropped(); i < table.num_blocks(); ++i)
                ++held[static_cast<std::size_t>(table.at(i).value)];
        }
        for (std::int32_t id = 0; id < groups_[group].num_blocks; ++id)
            CHECK(pools_[group].num_references(base::BlockId(id)) ==
                      held[static_cast<std::size_t>(id)],
                  "references are not the tables");
    }
    for (const Running& sequence : running_) check_content(sequence);
    index_.check_invariants();
}

}  // namespace pagoda::kv
