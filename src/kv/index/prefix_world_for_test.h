#pragma once
// PrefixWorld: sequences that come, find their prefixes, compute, publish and go, in any order that
// a source of numbers chooses. It remembers what it wrote to each block and CHECKs that whatever
// the index gives is exactly that sequence's tokens under its scope. For tests and fuzzing.

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "kv/index/block_table.h"
#include "kv/index/prefix_index.h"

namespace pagoda::kv {

class PrefixWorld final {
  public:
    struct Group {
        std::int64_t num_blocks = 0;
        std::int64_t window = 0;
    };
    // A number in [low, high].
    using Choose = std::function<std::int64_t(std::int64_t low, std::int64_t high)>;
    PrefixWorld(const std::vector<Group>& groups, Choose choose);

    // Something happens; then everything is checked.
    void step();
    [[nodiscard]] std::int64_t num_found() const { return num_found_; }
    [[nodiscard]] std::int64_t num_copied() const { return num_copied_; }
    [[nodiscard]] std::int64_t num_replaced() const { return num_replaced_; }
    [[nodiscard]] std::int64_t num_evicted() const { return num_evicted_; }
    // All sequences go; nothing but cached and free blocks is left, and nothing but free ones after
    // a reset.
    void finish();

  private:
    struct Running {
        std::vector<BlockTable> tables;
        TokenChain chain;
        std::int64_t num_computed = 0;
        PrefixCursor cursor;
    };
    struct Content {
        std::string scope;
        std::vector<base::TokenId> tokens;  // of the whole prefix, with this block's own
    };

    void begin();
    void take_over(Running& sequence, const PrefixMatch& match);
    [[nodiscard]] bool advance(Running& sequence);
    void publish(Running& sequence);
    void end(std::size_t which);
    [[nodiscard]] bool make_room(std::size_t group);
    void write(Running& sequence, std::int64_t position);
    void check_content(const Running& sequence) const;
    [[nodiscard]] std::vector<base::TokenId> prefix(const Running& sequence,
                                                    std::int64_t end) const;
    void check() const;

    std::vector<Group> groups_;
    Choose choose_;
    PrefixHasher hasher_;
    std::deque<BlockPool> pools_;
    PrefixIndex index_;
    std::vector<Running> running_;
    std::vector<std::vector<Content>> contents_;  // by group and block
    std::int64_t num_found_ = 0, num_copied_ = 0, num_replaced_ = 0, num_evicted_ = 0;
};

}  // namespace pagoda::kv
