#pragma once
// SharedPrefixes: which decode rows of a batch begin with the same blocks of KV, and how to pass
// over these once for all of them. Sequences are sorted by their block tables; neighbours then have
// the longest prefix in common, and passes over nested prefixes form a tree:
//
//   chunks     0        4            9       12
//   seq a      |--------|............|.......      pass 1: a b c d, chunks [0, 4)
//   seq b      |--------|............|..           pass 2: a b, chunks [4, 9)
//   seq c      |--------|....                      passes 3 to 6: each row alone, from 9, 9, 4, 4
//   seq d      |--------|.......                   to its own end
//
// A pass goes on from the states that the one before it left, so that every row merges its chunks
// in ascending order as if it were alone. Engine thread only; allocates in its constructor alone.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops/sequence_rows.h"

namespace pagoda::kernels {

class SharedPrefixes {
  public:
    // Rows [row_begin, row_end) of rows() over the chunks [chunk_begin, chunk_end).
    struct Pass {
        std::int32_t row_begin, row_end;
        std::int64_t chunk_begin, chunk_end;
        bool is_last;  // of its one row: nothing goes on from here
    };
    // The passes of some rows, in order: the work of one thread on one KV head.
    struct Run {
        std::int32_t row_begin, row_end;
        std::int32_t pass_begin, pass_end;
    };
    struct Division {
        std::int64_t max_rows = 0;  // of one run
        std::int64_t kv_heads = 1;  // each run is done once for each
        int threads = 1;            // with fewer items than threads nothing is shared
    };

    explicit SharedPrefixes(std::int64_t max_sequences);
    [[nodiscard]] static std::size_t bytes(std::int64_t max_sequences);

    // Looks through a batch; with a window, sequences whose rows do not see all of their keys stay
    // apart. REQUIRES: at most max_sequences of them.
    void find(std::span<const SequenceRows> sequences, std::int64_t window,
              const Division& division);

    [[nodiscard]] std::span<const Run> runs() const { return runs_; }
    [[nodiscard]] std::span<const Pass> passes() const { return passes_; }
    // The sequences of the runs, and the batch row of each.
    [[nodiscard]] const SequenceRows& sequence(std::int32_t row) const { return *rows_[row].from; }
    [[nodiscard]] std::span<const std::int32_t> batch_rows() const { return batch_rows_; }
    // Whether a sequence of the last find() is in a run; the others are left to the caller.
    [[nodiscard]] bool is_shared(std::size_t sequence) const { return is_shared_[sequence]; }

  private:
    struct Row {
        const SequenceRows* from;
        std::int64_t whole_chunks;  // that the row sees all of
        std::int64_t common;        // chunks in common with the row before
    };

    void collect(std::span<const SequenceRows> sequences, std::int64_t window);
    void drop_single_rows();
    void divide(const Division& division);
    void add_run(std::int32_t begin, std::int32_t end);
    void add_passes(std::int32_t begin, std::int32_t end, std::int64_t chunk);

    std::vector<Row> rows_;
    std::vector<std::int32_t> batch_rows_;
    std::vector<Run> runs_;
    std::vector<Pass> passes_;
    std::vector<bool> is_shared_;
};

}  // namespace pagoda::kernels
