#include "kernels/ops/shared_prefix.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/args.h"

namespace pagoda::kernels {
namespace {

// As many items for each thread even out what the passes differ by.
constexpr std::int64_t kItemsPerThread = 4;
constexpr std::int64_t kChunkBlocks = kAttentionChunk / kBlockTokens;
// A tree over n rows has at most n passes of one row and n - 1 of several.
constexpr std::int64_t kPassesPerRow = 2;

const std::int32_t* chunk_blocks(const SequenceRows& sequence, std::int64_t chunk) {
    return sequence.block_table.data() + chunk * kChunkBlocks;
}

std::size_t bytes_of_chunks(std::int64_t chunks) {
    return static_cast<std::size_t>(chunks * kChunkBlocks) * sizeof(std::int32_t);
}

}  // namespace

SharedPrefixes::SharedPrefixes(std::int64_t max_sequences) {
    const auto count = static_cast<std::size_t>(max_sequences);
    rows_.reserve(count);
    batch_rows_.reserve(count);
    runs_.reserve(count);
    passes_.reserve(count * kPassesPerRow);
    is_shared_.reserve(count);
}

std::size_t SharedPrefixes::bytes(std::int64_t max_sequences) {
    return static_cast<std::size_t>(max_sequences) *
           (sizeof(Row) + sizeof(std::int32_t) + sizeof(Run) + kPassesPerRow * sizeof(Pass) + 1);
}

void SharedPrefixes::find(std::span<const SequenceRows> sequences, std::int64_t window,
                          const Division& division) {
    CHECK(sequences.size() <= rows_.capacity(),
          "more sequences than shared prefixes have room for");
    rows_.clear();
    batch_rows_.clear();
    runs_.clear();
    passes_.clear();
    is_shared_.assign(sequences.size(), false);
    collect(sequences, window);
    drop_single_rows();
    if (rows_.empty()) return;
    divide(division);
    for (const Run& run : runs_) {
        for (std::int32_t row = run.row_begin; row < run.row_end; ++row)
            is_shared_[static_cast<std::size_t>(rows_[row].from - sequences.data())] = true;
    }
}

// The rows that could share, sorted so that those with the longest common prefix are neighbours.
void SharedPrefixes::collect(std::span<const SequenceRows> sequences, std::int64_t window) {
    for (const SequenceRows& sequence : sequences) {
        const std::int64_t keys = sequence.first_position + 1;
        const bool sees_all = window == 0 || keys <= window;
        if (sequence.num_rows == 1 && sees_all && keys >= kAttentionChunk)
            rows_.push_back(
                {.from = &sequence, .whole_chunks = keys / kAttentionChunk, .common = 0});
    }
    // Any total order will do that compares from the front.
    std::sort(rows_.begin(), rows_.end(), [](const Row& a, const Row& b) {
        const std::int64_t chunks = std::min(a.whole_chunks, b.whole_chunks);
        const int order = std::memcmp(chunk_blocks(*a.from, 0), chunk_blocks(*b.from, 0),
                                      bytes_of_chunks(chunks));
        if (order != 0) return order < 0;
        if (a.whole_chunks != b.whole_chunks) return a.whole_chunks < b.whole_chunks;
        return a.from < b.from;
    });
    for (std::size_t i = 1; i < rows_.size(); ++i) {
        const Row& before = rows_[i - 1];
        Row& row = rows_[i];
        const std::int64_t chunks = std::min(before.whole_chunks, row.whole_chunks);
        while (row.common < chunks &&
               std::memcmp(chunk_blocks(*before.from, row.common),
                           chunk_blocks(*row.from, row.common), bytes_of_chunks(1)) == 0)
            ++row.common;
    }
}

// Rows that share nothing with either neighbour.
void SharedPrefixes::drop_single_rows() {
    const std::size_t count = rows_.size();
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const bool shares = rows_[i].common > 0 || (i + 1 < count && rows_[i + 1].common > 0);
        if (shares) rows_[kept++] = rows_[i];
    }
    rows_.resize(kept);
}

// Families are rows with a first chunk in common. Each is cut into as many runs as the threads
// want items, of two rows at least.
void SharedPrefixes::divide(const Division& division) {
    const auto count = static_cast<std::int32_t>(rows_.size());
    std::int64_t families = 0;
    for (const Row& row : rows_) families += row.common == 0 ? 1 : 0;
    const std::int64_t wanted =
        division.threads == 1
            ? 1
            : (kItemsPerThread * division.threads - 1) / (division.kv_heads * families) + 1;
    for (std::int32_t begin = 0; begin < count;) {
        std::int32_t end = begin + 1;
        while (end < count && rows_[end].common > 0) ++end;
        const std::int64_t size = end - begin;
        const std::int64_t least = (size + division.max_rows - 1) / division.max_rows;
        const std::int64_t parts = std::max(least, std::min(wanted, size / 2));
        for (std::int64_t part = 0; part < parts; ++part)
            add_run(static_cast<std::int32_t>(begin + size * part / parts),
                    static_cast<std::int32_t>(begin + size * (part + 1) / parts));
        begin = end;
    }
    if (std::ssize(runs_) * division.kv_heads < division.threads) runs_.clear();
}

void SharedPrefixes::add_run(std::int32_t begin, std::int32_t end) {
    const auto first_pass = static_cast<std::int32_t>(passes_.size());
    for (std::int32_t row = begin; row < end; ++row)
        batch_rows_.push_back(static_cast<std::int32_t>(rows_[row].from->first_row));
    add_passes(begin, end, 0);
    runs_.push_back({.row_begin = begin,
                     .row_end = end,
                     .pass_begin = first_pass,
                     .pass_end = static_cast<std::int32_t>(passes_.size())});
}

// The passes of rows [begin, end) from `chunk` on: what all have in common, then the rows of each
// longer common prefix by themselves.
void SharedPrefixes::add_passes(std::int32_t begin, std::int32_t end, std::int64_t chunk) {
    if (end - begin == 1) {
        passes_.push_back({.row_begin = begin,
                           .row_end = end,
                           .chunk_begin = chunk,
                           .chunk_end = rows_[begin].from->first_position / kAttentionChunk + 1,
                           .is_last = true});
        return;
    }
    std::int64_t common = rows_[begin + 1].common;
    for (std::int32_t row = begin + 2; row < end; ++row)
        common = std::min(common, rows_[row].common);
    if (common > chunk)
        passes_.push_back({.row_begin = begin,
                           .row_end = end,
                           .chunk_begin = chunk,
                           .chunk_end = common,
                           .is_last = false});
    for (std::int32_t first = begin; first < end;) {
        std::int32_t last = first + 1;
        while (last < end && rows_[last].common > common) ++last;
        add_passes(first, last, common);
        first = last;
    }
}

}  // namespace pagoda::kernels
