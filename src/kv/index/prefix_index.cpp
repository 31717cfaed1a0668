#include "kv/index/prefix_index.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace pagoda::kv {

namespace {

constexpr std::int32_t kNoNode = -1;
constexpr base::BlockId kNoBlock(-1);
// Beside one for each block: roots, and nodes whose blocks all windows have left behind.
constexpr std::int64_t kSpareNodes = 2048;
// Fewer tokens are not worth a block's copy.
constexpr std::int64_t kMinCopied = 4;
// Children that are looked at for tokens in common, newest first.
constexpr int kMaxChildrenSeen = 16;
// From this many uses on a block is evicted after those that are seldom used.
constexpr std::int64_t kManyUses = 2;

std::int64_t total_blocks(const std::deque<BlockPool>& pools) {
    std::int64_t count = 0;
    for (const BlockPool& pool : pools) count += pool.num_blocks();
    return count;
}

}  // namespace

PrefixCursor::PrefixCursor(PrefixIndex& index, std::int32_t node, std::int64_t num_blocks)
    : index_(&index), node_(node), epoch_(index.epoch_), num_blocks_(num_blocks) {
    ++index.at(node).num_holds;
}

PrefixCursor::PrefixCursor(PrefixCursor&& other) noexcept
    : index_(std::exchange(other.index_, nullptr)),
      node_(other.node_),
      epoch_(other.epoch_),
      num_blocks_(other.num_blocks_) {}

PrefixCursor& PrefixCursor::operator=(PrefixCursor&& other) noexcept {
    if (this == &other) return *this;
    reset();
    index_ = std::exchange(other.index_, nullptr);
    node_ = other.node_;
    epoch_ = other.epoch_;
    num_blocks_ = other.num_blocks_;
    return *this;
}

bool PrefixCursor::is_attached() const {
    return index_ != nullptr && epoch_ == index_->epoch_;
}

void PrefixCursor::reset() {
    PrefixIndex* const index = std::exchange(index_, nullptr);
    if (index == nullptr || epoch_ != index->epoch_) return;
    --index->at(node_).num_holds;
    index->remove_if_unused(node_);
}

void PrefixCursor::move_to(std::int32_t node) {
    ++index_->at(node).num_holds;
    --index_->at(node_).num_holds;
    node_ = node;
    ++num_blocks_;
}

PrefixIndex::PrefixIndex(std::deque<BlockPool>& pools, std::vector<std::int64_t> windows)
    : pools_(pools),
      windows_(std::move(windows)),
      max_nodes_(std::min<std::int64_t>(total_blocks(pools) + kSpareNodes,
                                        std::numeric_limits<NodeIndex>::max())) {
    CHECK(windows_.size() == pools_.size(), "each group has a window");
    for (const BlockPool& pool : pools_)
        block_node_.emplace_back(static_cast<std::size_t>(pool.num_blocks()), kNoNode);
}

std::optional<base::BlockId> PrefixIndex::block_of(NodeIndex node, std::size_t group) const {
    const base::BlockId id = node_blocks_[static_cast<std::size_t>(node) * pools_.size() + group];
    if (id == kNoBlock) return std::nullopt;
    return id;
}

bool PrefixIndex::has_block(NodeIndex node, std::size_t group, const TakenBlocks& taken) const {
    const std::optional<base::BlockId> id = block_of(node, group);
    return id && (taken.empty() || !taken[group].contains(*id));
}

std::optional<PrefixIndex::NodeIndex> PrefixIndex::find_root(const PromptKeys& prompt) const {
    const auto found = by_hash_.find(prompt.root);
    if (found == by_hash_.end()) return std::nullopt;
    const Node& node = at(found->second);
    if (node.scope == nullptr || *node.scope != prompt.scope) return std::nullopt;
    return found->second;
}

std::optional<PrefixIndex::NodeIndex> PrefixIndex::find_child(NodeIndex parent,
                                                              const TokenChain& tokens,
                                                              std::int64_t index) const {
    const auto found = by_hash_.find(tokens.hash(index));
    if (found == by_hash_.end()) return std::nullopt;
    const Node& node = at(found->second);
    if (node.parent != parent || node.num_tokens != kBlockTokens) return std::nullopt;
    if (tokens.num_common(index, node.tokens, kBlockTokens) != kBlockTokens) return std::nullopt;
    return found->second;
}

// Whether the groups that look back on everything have their blocks here.
bool PrefixIndex::is_whole(NodeIndex node, const TakenBlocks& taken) const {
    for (std::size_t group = 0; group < pools_.size(); ++group) {
        if (windows_[group] == 0 && !has_block(node, group, taken)) return false;
    }
    return true;
}

// The root and the nodes of the sequence's full blocks, as far as they go.
std::vector<PrefixIndex::NodeIndex> PrefixIndex::path(const TokenChain& tokens,
                                                      const TakenBlocks& taken) const {
    std::vector<NodeIndex> path;
    std::optional<NodeIndex> node = find_root(tokens.prompt());
    for (std::int64_t index = 0; node; ++index) {
        path.push_back(*node);
        if (index == tokens.num_full_blocks()) break;
        node = find_child(*node, tokens, index);
        if (node && !is_whole(*node, taken)) break;
    }
    return path;
}

// The most blocks of the path, its root not counted, that a sequence can go on from: each window
// needs its last ones without a gap.
std::int64_t PrefixIndex::usable_blocks(std::span<const NodeIndex> path, std::int64_t at_most,
                                        const TakenBlocks& taken) const {
    std::vector<std::int64_t> first_of_run(pools_.size(), 0);
    std::int64_t usable = 0;
    for (std::int64_t count = 1; count <= at_most; ++count) {
        bool is_usable = true;
        for (std::size_t group = 0; group < pools_.size(); ++group) {
            if (!has_block(path[static_cast<std::size_t>(count)], group, taken))
                first_of_run[group] = count;
            is_usable = is_usable && first_of_run[group] <=
                                         first_block_needed(count * kBlockTokens, windows_[group]);
        }
        if (is_usable) usable = count;
    }
    return usable;
}

PrefixIndex::Partial PrefixIndex::best_partial(NodeIndex parent, const TokenChain& tokens,
                                               std::int64_t index, std::int64_t at_most) const {
    Partial best{kNoNode, 0};
    int seen = 0;
    for (NodeIndex child = at(parent).first_child; child != kNoNode && seen < kMaxChildrenSeen;
         child = at(child).next_sibling, ++seen) {
        const std::int64_t count = std::min<std::int64_t>(at_most, at(child).num_tokens);
        const std::int64_t common = tokens.num_common(index, at(child).tokens, count);
        if (common > best.num_tokens) best = {child, common};
    }
    return best;
}

void PrefixIndex::add_copy(PrefixMatch& match, std::span<const NodeIndex> path,
                           const TokenChain& tokens, std::int64_t max_tokens,
                           const TakenBlocks& taken) const {
    const std::int64_t at_most =
        std::min(kBlockTokens, max_tokens - match.num_blocks * kBlockTokens);
    const auto end = static_cast<std::size_t>(match.num_blocks);
    const Partial best = end + 1 < path.size()
                             ? Partial{path[end + 1], at_most}
                             : best_partial(path[end], tokens, match.num_blocks, at_most);
    if (best.num_tokens < kMinCopied) return;
    for (std::size_t group = 0; group < pools_.size(); ++group) {
        if (!has_block(best.node, group, taken)) return match.drop_copy();
        match.copied_from.push_back(*block_of(best.node, group));
    }
    match.num_copied = best.num_tokens;
}

PrefixMatch PrefixIndex::match(const TokenChain& tokens, std::int64_t max_tokens,
                               const TakenBlocks& taken) const {
    CHECK(max_tokens < tokens.num_tokens(), "a token must be left to compute");
    PrefixMatch match;
    match.groups.resize(pools_.size());
    const std::vector<NodeIndex> nodes = path(tokens, taken);
    if (nodes.empty()) return match;
    match.num_blocks =
        usable_blocks(nodes, std::min(std::ssize(nodes) - 1, max_tokens / kBlockTokens), taken);
    for (std::size_t group = 0; group < pools_.size(); ++group) {
        PrefixMatch::Group& part = match.groups[group];
        part.first_index = first_block_needed(match.num_blocks * kBlockTokens, windows_[group]);
        for (std::int64_t index = part.first_index; index < match.num_blocks; ++index)
            part.blocks.push_back(*block_of(nodes[static_cast<std::size_t>(index + 1)], group));
    }
    add_copy(match, nodes, tokens, max_tokens, taken);
    return match;
}

void PrefixIndex::use(NodeIndex node) {
    if (++at(node).num_uses < kManyUses) return;
    for (std::size_t group = 0; group < pools_.size(); ++group) {
        // What the windows left out of the match was not used.
        const std::optional<base::BlockId> id = block_of(node, group);
        if (id && pools_[group].num_references(*id) > 0) pools_[group].mark_reused(*id);
    }
}

PrefixCursor PrefixIndex::start(const TokenChain& tokens, const PrefixMatch& match) {
    std::optional<NodeIndex> root = find_root(tokens.prompt());
    if (!root) {
        CHECK(match.num_tokens() == 0, "a match without a root");
        if (by_hash_.contains(tokens.prompt().root)) return {};
        root = add_node(kNoNode);
        at(*root).hash = tokens.prompt().root;
        at(*root).scope = std::make_unique<const std::string>(tokens.prompt().scope);
        by_hash_.emplace(at(*root).hash, *root);
    }
    NodeIndex node = *root;
    for (std::int64_t index = 0; index < match.num_blocks; ++index) {
        const std::optional<NodeIndex> child = find_child(node, tokens, index);
        CHECK(child.has_value(), "a match is gone");
        node = *child;
        use(node);
    }
    if (match.num_copied > 0) {
        const NodeIndex source =
            block_node_[0][static_cast<std::size_t>(match.copied_from[0].value)];
        CHECK(source != kNoNode && at(source).parent == node, "the block to copy is gone");
        const bool is_reused = ++at(source).num_uses >= kManyUses;
        for (std::size_t group = 0; group < pools_.size(); ++group) {
            const base::BlockId id = match.copied_from[group];
            is_reused ? pools_[group].mark_reused(id) : pools_[group].touch(id);
        }
    }
    return PrefixCursor(*this, node, match.num_blocks);
}

std::vector<PrefixIndex::Replacement> PrefixIndex::publish(
    PrefixCursor& cursor, const TokenChain& tokens,
    std::span<const std::optional<base::BlockId>> blocks) {
    std::vector<Replacement> replaced;
    if (!cursor.is_attached()) return replaced;
    const std::int64_t index = cursor.num_blocks_;
    std::optional<NodeIndex> node = find_child(cursor.node_, tokens, index);
    if (!node) {
        // Another sequence's tokens under the same hash: what follows here cannot be found.
        if (by_hash_.contains(tokens.hash(index))) return cursor.reset(), replaced;
        make_room_for_node();
        if (num_nodes_ >= max_nodes_) return cursor.reset(), replaced;
        node = add_node(cursor.node_);
        Node& added = at(*node);
        added.hash = tokens.hash(index);
        added.tokens = tokens.block(index);
        added.num_tokens = static_cast<std::int32_t>(kBlockTokens);
        by_hash_.emplace(added.hash, *node);
        absorb_partials(*node);
    }
    for (std::size_t group = 0; group < pools_.size(); ++group) {
        if (!blocks[group]) continue;
        const std::optional<base::BlockId> known = block_of(*node, group);
        if (!known) {
            add_block(*node, group, *blocks[group]);
        } else if (*known != *blocks[group]) {
            replaced.push_back({static_cast<std::int32_t>(group), *known});
        }
    }
    cursor.move_to(*node);
    return replaced;
}

void PrefixIndex::publish_partial(const PrefixCursor& cursor, const TokenChain& tokens,
                                  std::int64_t num_tokens, std::span<const base::BlockId> blocks) {
    if (!cursor.is_attached() || num_tokens < kMinCopied) return;
    const std::int64_t index = cursor.num_blocks_;
    if (best_partial(cursor.node_, tokens, index, num_tokens).num_tokens == num_tokens) return;
    if (num_nodes_ >= max_nodes_) return;
    const NodeIndex node = add_node(cursor.node_);
    Node& added = at(node);
    added.num_tokens = static_cast<std::int32_t>(num_tokens);
    added.tokens = tokens.block(index);
    std::fill(added.tokens.begin() + num_tokens, added.tokens.end(), 0);
    for (std::size_t group = 0; group < pools_.size(); ++group)
        add_block(node, group, blocks[group]);
    absorb_partials(node);
}

// Many scopes with little in each have more nodes than blocks: the oldest go, as they would for
// want of blocks.
void PrefixIndex::make_room_for_node() {
    constexpr int kMostTries = 8;
    std::size_t group = 0;
    while (group + 1 < pools_.size() && windows_[group] != 0) ++group;
    for (int tries = 0; tries < kMostTries && num_nodes_ >= max_nodes_; ++tries) {
        const std::optional<base::BlockId> oldest = pools_[group].first_cached();
        if (!oldest) return;
        evict(group, *oldest);
    }
}

// Partial blocks that the node's tokens go beyond, and that nobody holds, have become useless.
void PrefixIndex::absorb_partials(NodeIndex node) {
    int seen = 0;
    for (NodeIndex next = at(node).next_sibling; next != kNoNode && seen < kMaxChildrenSeen;
         ++seen) {
        const NodeIndex other = std::exchange(next, at(next).next_sibling);
        const std::int32_t count = at(other).num_tokens;
        if (count >= at(node).num_tokens) continue;
        if (!std::equal(at(other).tokens.begin(), at(other).tokens.begin() + count,
                        at(node).tokens.begin()))
            continue;
        bool is_idle = true;
        for (std::size_t group = 0; group < pools_.size(); ++group) {
            const std::optional<base::BlockId> id = block_of(other, group);
            is_idle = is_idle && (!id || pools_[group].is_cached(*id));
        }
        if (!is_idle) continue;
        remove_blocks(other);
        remove_if_unused(other);
    }
}

PrefixIndex::NodeIndex PrefixIndex::add_node(NodeIndex parent) {
    if (unused_.empty()) {
        unused_.push_back(static_cast<NodeIndex>(nodes_.size()));
        nodes_.emplace_back();
        node_blocks_.resize(nodes_.size() * pools_.size(), kNoBlock);
    }
    const NodeIndex index = unused_.back();
    unused_.pop_back();
    ++num_nodes_;
    Node& node = at(index);
    node = Node();
    node.is_live = true;
    node.parent = parent;
    node.first_child = node.previous_sibling = node.next_sibling = kNoNode;
    if (parent == kNoNode) return index;
    node.next_sibling = std::exchange(at(parent).first_child, index);
    if (node.next_sibling != kNoNode) at(node.next_sibling).previous_sibling = index;
    return index;
}

void PrefixIndex::add_block(NodeIndex node, std::size_t group, base::BlockId id) {
    NodeIndex& owner = block_node_[group][static_cast<std::size_t>(id.value)];
    CHECK(owner == kNoNode, "a block was published twice");
    owner = node;
    node_blocks_[static_cast<std::size_t>(node) * pools_.size() + group] = id;
    ++at(node).num_blocks;
    pools_[group].keep(id);
}

void PrefixIndex::remove_block(NodeIndex node, std::size_t group) {
    base::BlockId& id = node_blocks_[static_cast<std::size_t>(node) * pools_.size() + group];
    block_node_[group][static_cast<std::size_t>(id.value)] = kNoNode;
    pools_[group].forget(id);
    id = kNoBlock;
    --at(node).num_blocks;
}

void PrefixIndex::remove_blocks(NodeIndex node) {
    for (std::size_t group = 0; group < pools_.size(); ++group) {
        if (block_of(node, group)) remove_block(node, group);
    }
}

void PrefixIndex::evict(std::size_t group, base::BlockId id) {
    CHECK(pools_[group].is_cached(id), "the block is not cached");
    const NodeIndex node = block_node_[group][static_cast<std::size_t>(id.value)];
    if (windows_[group] == 0) {
        CHECK(at(node).first_child == kNoNode && at(node).num_holds == 0,
              "a block is evicted before what follows it");
        remove_blocks(node);
    } else {
        remove_block(node, group);
    }
    remove_if_unused(node);
}

// A node without blocks is there for its children and for who stands on it.
void PrefixIndex::remove_if_unused(NodeIndex node) {
    while (node != kNoNode && at(node).num_blocks == 0 && at(node).num_holds == 0 &&
           at(node).first_child == kNoNode) {
        const NodeIndex parent = at(node).parent;
        unlink(node);
        const bool is_hashed = at(node).scope != nullptr || at(node).num_tokens == kBlockTokens;
        if (is_hashed) by_hash_.erase(at(node).hash);
        at(node) = Node();
        unused_.push_back(node);
        --num_nodes_;
        node = parent;
    }
}

void PrefixIndex::unlink(NodeIndex node) {
    const Node& gone = at(node);
    if (gone.next_sibling != kNoNode)
        at(gone.next_sibling).previous_sibling = gone.previous_sibling;
    if (gone.previous_sibling != kNoNode) {
        at(gone.previous_sibling).next_sibling = gone.next_sibling;
    } else if (gone.parent != kNoNode) {
        at(gone.parent).first_child = gone.next_sibling;
    }
}

void PrefixIndex::clear() {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
        if (nodes_[node].is_live) remove_blocks(static_cast<NodeIndex>(node));
    }
    nodes_.clear();
    node_blocks_.clear();
    unused_.clear();
    by_hash_.clear();
    num_nodes_ = 0;
    ++epoch_;
}

void PrefixIndex::check_invariants() const {
    std::int64_t live = 0;
    std::int64_t hashed = 0;
    std::vector<std::int64_t> blocks(pools_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        const Node& node = nodes_[i];
        if (!node.is_live) continue;
        const auto self = static_cast<NodeIndex>(i);
        ++live;
        CHECK(node.num_blocks > 0 || node.first_child != kNoNode || node.num_holds > 0,
              "a node is of no use");
        CHECK(node.scope == nullptr || node.num_blocks == 0, "a root has blocks");
        CHECK((node.scope == nullptr) == (node.parent != kNoNode), "a root has a parent");
        if (node.scope != nullptr || node.num_tokens == kBlockTokens) {
            ++hashed;
            CHECK(by_hash_.at(node.hash) == self, "a node is not found by its hash");
        }
        for (NodeIndex child = node.first_child; child != kNoNode; child = at(child).next_sibling)
            CHECK(at(child).is_live && at(child).parent == self, "a child has another parent");
        for (std::size_t group = 0; group < pools_.size(); ++group) {
            const std::optional<base::BlockId> id = block_of(self, group);
            CHECK(id || windows_[group] > 0 || node.scope != nullptr, "a node lacks a block");
            if (!id) continue;
            ++blocks[group];
            CHECK(block_node_[group][static_cast<std::size_t>(id->value)] == self &&
                      pools_[group].is_kept(*id),
                  "a node's block is not its own");
            // Leaves first: who holds a block holds all before it.
            CHECK(windows_[group] > 0 || node.parent == kNoNode || !block_of(node.parent, group) ||
                      pools_[group].num_references(*id) == 0 ||
                      pools_[group].num_references(*block_of(node.parent, group)) > 0,
                  "a block is held and the one before it is not");
        }
    }
    CHECK(live == num_nodes_ && hashed == std::ssize(by_hash_), "nodes do not add up");
    for (std::size_t group = 0; group < pools_.size(); ++group) {
        std::int64_t kept = 0;
        const BlockPool& pool = pools_[group];
        for (std::int32_t id = 0; id < pool.num_blocks(); ++id)
            kept += pool.is_kept(base::BlockId(id)) ? 1 : 0;
        CHECK(kept == blocks[group], "a block is kept without a node");
    }
}

static_assert(sizeof(void*) == 8, "the figures below are for 64 bits");

std::int64_t prefix_index_bytes(std::int64_t num_blocks, std::int64_t num_groups) {
    // A node with its place in the table of hashes, and for each group its block, in a vector that
    // may have grown to twice of what it needs.
    constexpr std::int64_t kNodeBytes = 208 + 64;
    const std::int64_t nodes = num_blocks + kSpareNodes;
    return nodes * (kNodeBytes + num_groups * 8) + num_blocks * 4;
}

}  // namespace pagoda::kv
