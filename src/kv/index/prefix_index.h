#pragma once
// PrefixIndex: which blocks hold the KV of which tokens, so that a sequence that begins with tokens
// that were computed before takes their blocks instead of computing them again. A tree of blocks of
// 32 tokens, one root for each scope (model, adapter, client, salt):
//
//   root "m..c1.." --- [32 tokens] --- [32 tokens] --- [32 tokens]
//                                  \-- [32 tokens] --- [17 tokens]     a partial block, to be
//                                  copied
//
// A node holds the block of every KV group that has it. Children are found by a keyed 128-bit hash
// over all tokens up to there (TokenChain) and verified: same parent, same tokens, at the root same
// scope. A group with a window needs the blocks within the window alone, so they come and go on
// their own; where a group without one loses its block, the node goes, leaves first.
// Owned by the engine thread; the pools, which it does not own, outlive it, and it its cursors.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kv/index/block_pool.h"
#include "kv/index/token_chain.h"

namespace pagoda::kv {

class PrefixIndex;

// Where in the tree a sequence stands, after so many blocks of its own. Keeps its node alive.
// Nothing of a detached one is published.
class PrefixCursor final {
  public:
    PrefixCursor() = default;
    ~PrefixCursor() { reset(); }
    PrefixCursor(PrefixCursor&& other) noexcept;
    PrefixCursor& operator=(PrefixCursor&& other) noexcept;
    PrefixCursor(const PrefixCursor&) = delete;
    PrefixCursor& operator=(const PrefixCursor&) = delete;

    [[nodiscard]] bool is_attached() const;
    [[nodiscard]] std::int64_t num_blocks() const { return num_blocks_; }
    void reset();

  private:
    friend class PrefixIndex;
    PrefixCursor(PrefixIndex& index, std::int32_t node, std::int64_t num_blocks);
    void move_to(std::int32_t node);

    PrefixIndex* index_ = nullptr;
    std::int32_t node_ = 0;
    std::uint64_t epoch_ = 0;  // of the index; cursors from before a clear() are detached
    std::int64_t num_blocks_ = 0;
};

// Blocks that a plan takes from the cache before it is applied, by group: no hit any more.
using TakenBlocks = std::vector<std::unordered_set<base::BlockId>>;

// What of a sequence the index has.
struct PrefixMatch {
    // The blocks of one group that its window needs; those before first_index are not needed.
    struct Group {
        std::int64_t first_index = 0;
        std::vector<base::BlockId> blocks;
    };
    std::int64_t num_blocks = 0;  // whole ones
    std::vector<Group> groups;
    // Beyond the whole blocks, the first tokens of another one, to be copied.
    std::int64_t num_copied = 0;
    std::vector<base::BlockId> copied_from;  // by group, empty when num_copied is 0

    [[nodiscard]] std::int64_t num_tokens() const { return num_blocks * kBlockTokens + num_copied; }
    void drop_copy() {
        num_copied = 0;
        copied_from.clear();
    }
};

class PrefixIndex final {
  public:
    // windows: by group, 0 where everything is looked back on.
    PrefixIndex(std::deque<BlockPool>& pools, std::vector<std::int64_t> windows);

    // The longest prefix of the sequence, at most max_tokens, that all groups have. Only reads.
    [[nodiscard]] PrefixMatch match(const TokenChain& tokens, std::int64_t max_tokens,
                                    const TakenBlocks& taken) const;

    // Whether a block with this hash is there: a cheap hint, to be verified by match().
    [[nodiscard]] bool has(const base::Hash128& hash) const { return by_hash_.contains(hash); }

    // A sequence starts with what match() found: counts as a use of it. Detached when another
    // scope has the same hash. REQUIRES: nothing of the match was evicted since; the sequence has
    // its references on the blocks.
    [[nodiscard]] PrefixCursor start(const TokenChain& tokens, const PrefixMatch& match);

    struct Replacement {
        std::int32_t group = 0;
        base::BlockId block;
    };
    // The next block after the cursor is computed. `blocks`: the sequence's, by group, none where a
    // window has left it behind. Those that another sequence published first come back: same
    // content, to be taken in place of the sequence's own. REQUIRES: the sequence has full blocks
    // beyond the cursor.
    [[nodiscard]] std::vector<Replacement> publish(
        PrefixCursor& cursor, const TokenChain& tokens,
        std::span<const std::optional<base::BlockId>> blocks);
    // The first num_tokens tokens of the next block, of a sequence that goes no further.
    void publish_partial(const PrefixCursor& cursor, const TokenChain& tokens,
                         std::int64_t num_tokens, std::span<const base::BlockId> blocks);

    // Makes a cached block free. REQUIRES: it is cached; in a group without window, nothing that
    // follows it is in the index, as is so in the pool's order.
    void evict(std::size_t group, base::BlockId id);
    // Forgets everything: cached blocks are free, cursors detached. Blocks in use stay in use.
    void clear();

    [[nodiscard]] std::int64_t num_nodes() const { return num_nodes_; }
    // The most that are published, beside the roots of sequences that run.
    [[nodiscard]] std::int64_t max_nodes() const { return max_nodes_; }

    // The tree agrees with the pools, for tests.
    void check_invariants() const;

  private:
    friend class PrefixCursor;
    using NodeIndex = std::int32_t;
    struct Node {
        base::Hash128 hash;
        BlockTokens tokens{};
        std::int32_t num_tokens = 0;  // 0: a root; less than 32: partial, a leaf
        NodeIndex parent, first_child, previous_sibling, next_sibling;
        std::int32_t num_holds = 0;   // cursors
        std::int32_t num_blocks = 0;  // groups that have a block here
        std::int64_t num_uses = 0;    // sequences that found it
        bool is_live = false;
        std::unique_ptr<const std::string> scope;  // of a root
    };

    [[nodiscard]] Node& at(NodeIndex node) { return nodes_[static_cast<std::size_t>(node)]; }
    [[nodiscard]] const Node& at(NodeIndex node) const {
        return nodes_[static_cast<std::size_t>(node)];
    }
    [[nodiscard]] std::optional<base::BlockId> block_of(NodeIndex node, std::size_t group) const;
    [[nodiscard]] bool has_block(NodeIndex node, std::size_t group, const TakenBlocks& taken) const;
    [[nodiscard]] std::optional<NodeIndex> find_root(const PromptKeys& prompt) const;
    [[nodiscard]] std::optional<NodeIndex> find_child(NodeIndex parent, const TokenChain& tokens,
                                                      std::int64_t index) const;
    [[nodiscard]] bool is_whole(NodeIndex node, const TakenBlocks& taken) const;
    [[nodiscard]] std::vector<NodeIndex> path(const TokenChain& tokens,
                                              const TakenBlocks& taken) const;
    [[nodiscard]] std::int64_t usable_blocks(std::span<const NodeIndex> path, std::int64_t at_most,
                                             const TakenBlocks& taken) const;
    struct Partial {
        NodeIndex node;
        std::int64_t num_tokens = 0;
    };
    [[nodiscard]] Partial best_partial(NodeIndex parent, const TokenChain& tokens,
                                       std::int64_t index, std::int64_t at_most) const;
    void add_copy(PrefixMatch& match, std::span<const NodeIndex> path, const TokenChain& tokens,
                  std::int64_t max_tokens, const TakenBlocks& taken) const;

    void make_room_for_node();
    [[nodiscard]] NodeIndex add_node(NodeIndex parent);
    void add_block(NodeIndex node, std::size_t group, base::BlockId id);
    void remove_blocks(NodeIndex node);
    void remove_block(NodeIndex node, std::size_t group);
    void remove_if_unused(NodeIndex node);
    void unlink(NodeIndex node);
    void absorb_partials(NodeIndex node);
    void use(NodeIndex node);

    std::deque<BlockPool>& pools_;  // by group
    const std::vector<std::int64_t> windows_;
    const std::int64_t max_nodes_;
    std::deque<Node> nodes_;
    std::vector<base::BlockId> node_blocks_;          // [node][group]; kNoBlock: none
    std::vector<NodeIndex> unused_;                   // of nodes_
    std::vector<std::vector<NodeIndex>> block_node_;  // by group and block; kNoNode: none
    std::unordered_map<base::Hash128, NodeIndex> by_hash_;
    std::int64_t num_nodes_ = 0;
    std::uint64_t epoch_ = 1;
};

// Bytes that an index over so many blocks, in all groups together, takes at most.
[[nodiscard]] std::int64_t prefix_index_bytes(std::int64_t num_blocks, std::int64_t num_groups);

}  // namespace pagoda::kv
