#include "kernels/ops/attention.h"

#include <algorithm>
#include <atomic>

#include <fmt/core.h>

#include "base/check.h"
#include "kernels/generic/kv_layout_inl.h"

namespace pagoda::kernels {
namespace {

// Items are split so that each thread gets about this many pieces: enough for an even load,
// few enough to keep merging cheap.
constexpr std::int64_t kPiecesPerThread = 4;
// A piece below this many chunks costs more in merging than it gives in balance.
constexpr std::int64_t kMinPieceChunks = 4;
// Splitting is for few rows over long contexts; this many rows' worth of partial results are kept.
constexpr std::int64_t kSplitRows = 4;
// Less work than this (multiply-adds) is done before another thread has woken up.
constexpr std::int64_t kInlineWork = 100'000;
// Tokens of one kv_write piece.
constexpr std::int64_t kWriteRows = 32;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

// Whole cache lines, so that no two threads write to one.
std::size_t whole_lines(std::size_t floats) {
    constexpr std::size_t kLine = tensor::AlignedBuffer::kAlignment / sizeof(float);
    return (floats + kLine - 1) / kLine * kLine;
}

std::size_t thread_scratch_floats(const Kernels& kernels, std::int64_t group,
                                  std::int64_t head_dim) {
    return whole_lines(kernels.attention_scratch_floats(kernels.attention_rows, group, head_dim));
}

std::size_t thread_state_floats(const Kernels& kernels, std::int64_t group, std::int64_t head_dim) {
    return whole_lines(static_cast<std::size_t>(kernels.attention_rows * group * (head_dim + 2)));
}

std::size_t partial_floats(const AttentionWorkspace::Limits& limits) {
    const std::int64_t chunks = ceil_div(limits.max_positions, kAttentionChunk);
    return static_cast<std::size_t>(kSplitRows * chunks * limits.heads * (limits.head_dim + 2));
}

std::size_t max_whole_items(const Kernels& kernels, const AttentionWorkspace::Limits& limits) {
    const std::int64_t tiles =
        limits.max_rows / std::max<std::int64_t>(1, kernels.attention_rows) + limits.max_sequences;
    return static_cast<std::size_t>(tiles * limits.kv_heads);
}

// Pieces of all split items; beyond them an item stays whole.
std::size_t max_pieces(const DeviceContext& device) {
    return static_cast<std::size_t>(2 * kPiecesPerThread * device.team->num_threads());
}

void check_inputs(const AttentionInputs& inputs) {
    const PagedKvView& kv = inputs.kv;
    CHECK(kv.kv_heads > 0 && inputs.heads > 0 && inputs.heads % kv.kv_heads == 0,
          fmt::format("{} heads over {} KV heads", inputs.heads, kv.kv_heads));
    CHECK(kv.head_dim > 0 && kv.head_dim % 16 == 0 && kv.head_dim <= kMaxHeadDim,
          fmt::format("head_dim {} is not a multiple of 16 up to {}", kv.head_dim, kMaxHeadDim));
    CHECK(kv.block_bytes >= kv_block_bytes(kv.dtype, kv.kv_heads, kv.head_dim),
          fmt::format("a KV block of {} bytes is too small", kv.block_bytes));
    CHECK(inputs.scale > 0, fmt::format("a scale of {}", inputs.scale));
    CHECK(inputs.window >= 0, fmt::format("a window of {}", inputs.window));
    for (const SequenceRows& sequence : inputs.sequences) {
        CHECK(sequence.num_rows >= 0 && sequence.first_row >= 0 && sequence.first_position >= 0,
              "negative rows or positions");
        const auto positions =
            static_cast<std::int64_t>(sequence.block_table.size()) * kBlockTokens;
        CHECK(
            sequence.first_position + sequence.num_rows <= positions,
            fmt::format("a block table of {} blocks for {} positions", sequence.block_table.size(),
                        sequence.first_position + sequence.num_rows));
    }
}

}  // namespace

AttentionWorkspace::AttentionWorkspace(const DeviceContext& device, const Limits& limits)
    : limits_(limits),
      scratch_floats_(
          thread_scratch_floats(*device.kernels, limits.heads / limits.kv_heads, limits.head_dim)),
      state_floats_(
          thread_state_floats(*device.kernels, limits.heads / limits.kv_heads, limits.head_dim)),
      scratch_(scratch_floats_ * static_cast<std::size_t>(device.team->num_threads()) *
               sizeof(float)),
      states_(state_floats_ * static_cast<std::size_t>(device.team->num_threads()) * sizeof(float)),
      prefixes_(limits.max_sequences),
      partials_(partial_floats(limits) * sizeof(float)) {
    items_.reserve(max_whole_items(*device.kernels, limits) + max_pieces(device));
    merges_.reserve(max_pieces(device));
}

std::size_t AttentionWorkspace::bytes(const DeviceContext& device, const Limits& limits) {
    const std::int64_t group = limits.heads / limits.kv_heads;
    const std::size_t of_thread = thread_scratch_floats(*device.kernels, group, limits.head_dim) +
                                  thread_state_floats(*device.kernels, group, limits.head_dim);
    const std::size_t floats =
        of_thread * static_cast<std::size_t>(device.team->num_threads()) + partial_floats(limits);
    const std::size_t items = max_whole_items(*device.kernels, limits) + 2 * max_pieces(device);
    return floats * sizeof(float) + items * sizeof(Item) +
           SharedPrefixes::bytes(limits.max_sequences);
}

// Cuts a batch into work items and runs them. Which items there are and who runs them follows
// from the number of threads; what they compute does not.
class AttentionWorkspace::Plan {
  public:
    Plan(const DeviceContext& device, const AttentionInputs& inputs, AttentionWorkspace& workspace)
        : device_(device),
          inputs_(inputs),
          workspace_(workspace),
          group_(inputs.heads / inputs.kv.kv_heads) {
        workspace_.items_.clear();
        workspace_.merges_.clear();
        prefixes_.find(inputs.sequences, inputs.window,
                       {.max_rows = device.kernels->attention_rows,
                        .kv_heads = inputs.kv.kv_heads,
                        .threads = device.team->num_threads()});
        for (const SharedPrefixes::Run& run : prefixes_.runs()) add_run(run);
        for (std::size_t i = 0; i < inputs.sequences.size(); ++i) {
            if (!prefixes_.is_shared(i)) add_sequence(inputs.sequences[i]);
        }
        split_long_items();
    }

    void run() {
        run_all(workspace_.items_, [this](const Item& item, int thread) {
            if (item.run != nullptr) return run_passes(item, thread);
            device_.kernels->attention(kernel_args(item, scratch_of(thread)));
        });
        if (workspace_.merges_.empty()) return;
        run_all(workspace_.merges_, [this](const Item& item, int thread) {
            device_.kernels->attention_merge(merge_args(item, scratch_of(thread)));
        });
    }

  private:
    static std::int64_t num_chunks(const Item& item) { return item.chunk_end - item.chunk_begin; }
    static std::int64_t cost(const Item& item) { return item.rows * num_chunks(item); }

    // The passes over shared prefixes of some rows, for one KV head after another.
    void add_run(const SharedPrefixes::Run& run) {
        for (std::int32_t head = 0; head < inputs_.kv.kv_heads; ++head) {
            reserve_item();
            workspace_.items_.push_back({.run = &run, .kv_head = head});
        }
        for (std::int32_t pass = run.pass_begin; pass < run.pass_end; ++pass) {
            const SharedPrefixes::Pass& over = prefixes_.passes()[static_cast<std::size_t>(pass)];
            total_cost_ += (over.row_end - over.row_begin) * (over.chunk_end - over.chunk_begin) *
                           inputs_.kv.kv_heads;
        }
    }

    // Whole items, the longest (last) rows first, so that the end of the step is short.
    void add_sequence(const SequenceRows& sequence) {
        const std::int64_t tile = device_.kernels->attention_rows;
        for (std::int64_t t = ceil_div(sequence.num_rows, tile); t-- > 0;) {
            const std::int64_t begin = t * tile;
            const std::int64_t rows = std::min(tile, sequence.num_rows - begin);
            const std::int64_t first = sequence.first_position + begin;
            const std::int64_t first_key =
                inputs_.window > 0 ? std::max<std::int64_t>(0, first - inputs_.window + 1) : 0;
            for (std::int32_t head = 0; head < inputs_.kv.kv_heads; ++head) {
                add_item({.run = nullptr,
                          .sequence = &sequence,
                          .row_begin = begin,
                          .rows = rows,
                          .kv_head = head,
                          .chunk_begin = first_key / kAttentionChunk,
                          .chunk_end = (first + rows - 1) / kAttentionChunk + 1,
                          .partials = nullptr});
            }
        }
    }

    void reserve_item() const {
        CHECK(workspace_.items_.size() < workspace_.items_.capacity(),
              fmt::format("more rows or sequences than the workspace's {} and {}",
                          workspace_.limits_.max_rows, workspace_.limits_.max_sequences));
    }

    void add_item(const Item& item) {
        reserve_item();
        workspace_.items_.push_back(item);
        total_cost_ += cost(item);
    }

    void split_long_items() {
        const int threads = device_.team->num_threads();
        if (threads == 1) return;
        const std::int64_t target =
            std::max<std::int64_t>(1, total_cost_ / (kPiecesPerThread * threads));
        auto& items = workspace_.items_;
        const std::size_t num_whole = items.size();
        std::size_t used = 0;
        std::size_t num_pieces = 0;
        for (std::size_t i = 0; i < num_whole; ++i) {
            const Item whole = items[i];
            if (whole.run != nullptr) continue;
            const std::int64_t pieces =
                std::min(ceil_div(cost(whole), target), num_chunks(whole) / kMinPieceChunks);
            if (2 * cost(whole) <= 3 * target || pieces < 2) continue;
            const std::size_t floats = item_partial_floats(whole);
            if (used + floats > workspace_.partials_.as<float>().size()) continue;
            if (num_pieces + static_cast<std::size_t>(pieces) > max_pieces(device_)) continue;
            split(i, pieces, workspace_.partials_.as<float>().data() + used);
            used += floats;
            num_pieces += static_cast<std::size_t>(pieces);
        }
    }

    // Item i keeps the first piece; the others join the end of the list.
    void split(std::size_t i, std::int64_t pieces, float* partials) {
        Item whole = workspace_.items_[i];
        whole.partials = partials;
        workspace_.merges_.push_back(whole);
        const std::int64_t chunks = num_chunks(whole);
        const std::int64_t chunk_floats =
            static_cast<std::int64_t>(item_partial_floats(whole)) / chunks;
        for (std::int64_t p = 0; p < pieces; ++p) {
            Item piece = whole;
            piece.chunk_begin = whole.chunk_begin + chunks * p / pieces;
            piece.chunk_end = whole.chunk_begin + chunks * (p + 1) / pieces;
            piece.partials = partials + (piece.chunk_begin - whole.chunk_begin) * chunk_floats;
            if (p == 0) {
                workspace_.items_[i] = piece;
            } else {
                workspace_.items_.push_back(piece);
            }
        }
    }

    [[nodiscard]] std::size_t item_partial_floats(const Item& item) const {
        return static_cast<std::size_t>(cost(item) * group_ * (inputs_.kv.head_dim + 2));
    }

    template <class Call>
    void run_all(const std::vector<Item>& items, const Call& call) {
        std::atomic<std::size_t> next{0};
        const auto work = [&](int thread) {
            for (std::size_t i;
                 (i = next.fetch_add(1, std::memory_order_relaxed)) < items.size();) {
                call(items[i], thread);
            }
        };
        const std::int64_t multiply_adds =
            total_cost_ * group_ * 2 * kAttentionChunk * inputs_.kv.head_dim;
        if (multiply_adds < kInlineWork || items.size() == 1) {
            work(0);
        } else {
            device_.team->run(work);
        }
    }

    [[nodiscard]] float* scratch_of(int thread) const {
        return workspace_.scratch_.as<float>().data() +
               static_cast<std::size_t>(thread) * workspace_.scratch_floats_;
    }

    // Every pass begins with the states that the rows have from the passes before it.
    void run_passes(const Item& item, int thread) {
        float* const states = workspace_.states_.as<float>().data() +
                              static_cast<std::size_t>(thread) * workspace_.state_floats_;
        const std::int64_t row_floats = group_ * (inputs_.kv.head_dim + 2);
        for (std::int32_t number = item.run->pass_begin; number < item.run->pass_end; ++number) {
            const SharedPrefixes::Pass& pass = prefixes_.passes()[static_cast<std::size_t>(number)];
            AttentionArgs args = pass_args(pass, item.kv_head);
            float* const of_rows = states + (pass.row_begin - item.run->row_begin) * row_floats;
            args.begin_state = pass.chunk_begin > 0 ? of_rows : nullptr;
            args.end_state = pass.is_last ? nullptr : of_rows;
            args.scratch = scratch_of(thread);
            device_.kernels->attention(args);
        }
    }

    // All but states and scratch. Rows that share a pass see all of its keys.
    [[nodiscard]] AttentionArgs pass_args(const SharedPrefixes::Pass& pass,
                                          std::int32_t kv_head) const {
        const SequenceRows* shortest = &prefixes_.sequence(pass.row_begin);
        for (std::int32_t row = pass.row_begin + 1; row < pass.row_end; ++row) {
            const SequenceRows& other = prefixes_.sequence(row);
            if (other.first_position < shortest->first_position) shortest = &other;
        }
        return {.kv = inputs_.kv,
                .block_table = shortest->block_table.data(),
                .q = inputs_.q,
                .q_stride = inputs_.q_stride,
                .out = inputs_.out,
                .out_stride = inputs_.out_stride,
                .row_index = prefixes_.batch_rows().data() + pass.row_begin,
                .rows = pass.row_end - pass.row_begin,
                .first_position = shortest->first_position,
                .kv_head = kv_head,
                .group = static_cast<std::int32_t>(group_),
                .scale = inputs_.scale,
                .soft_cap = inputs_.soft_cap,
                .window = 0,  // it reaches to every key of these rows
                .sinks = inputs_.sinks,
                .chunk_begin = pass.chunk_begin,
                .chunk_end = pass.chunk_end,
                .begin_state = nullptr,
                .end_state = nullptr,
                .partials = nullptr,
                .scratch = nullptr};
    }

    [[nodiscard]] AttentionArgs kernel_args(const Item& item, float* scratch) const {
        const std::int64_t row = item.sequence->first_row + item.row_begin;
        return {.kv = inputs_.kv,
                .block_table = item.sequence->block_table.data(),
                .q = inputs_.q + row * inputs_.q_stride,
                .q_stride = inputs_.q_stride,
                .out = inputs_.out + row * inputs_.out_stride,
                .out_stride = inputs_.out_stride,
                .row_index = nullptr,
                .rows = item.rows,
                .first_position = item.sequence->first_position + item.row_begin,
                .kv_head = item.kv_head,
                .group = static_cast<std::int32_t>(group_),
                .scale = inputs_.scale,
                .soft_cap = inputs_.soft_cap,
                .window = inputs_.window,
                .sinks = inputs_.sinks,
                .chunk_begin = item.chunk_begin,
                .chunk_end = item.chunk_end,
                .begin_state = nullptr,
                .end_state = nullptr,
                .partials = item.partials,
                .scratch = scratch};
    }

    [[nodiscard]] AttentionMergeArgs merge_args(const Item& item, float* scratch) const {
        const std::int64_t row = item.sequence->first_row + item.row_begin;
        return {.partials = item.partials,
                .begin_state = nullptr,
                .num_chunks = num_chunks(item),
                .rows = item.rows,
                .head_dim = inputs_.kv.head_dim,
                .kv_head = item.kv_head,
                .group = static_cast<std::int32_t>(group_),
                .sinks = inputs_.sinks,
                .out = inputs_.out + row * inputs_.out_stride,
                .out_stride = inputs_.out_stride,
                .scratch = scratch};
    }

    const DeviceContext& device_;
    const AttentionInputs& inputs_;
    AttentionWorkspace& workspace_;
    SharedPrefixes& prefixes_ = workspace_.prefixes_;
    const std::int64_t group_;
    std::int64_t total_cost_ = 0;  // rows times chunks, over all KV heads
};

void attention(const DeviceContext& device, const AttentionInputs& inputs,
               AttentionWorkspace& workspace) {
    check_inputs(inputs);
    const std::size_t needed = thread_scratch_floats(
        *device.kernels, inputs.heads / inputs.kv.kv_heads, inputs.kv.head_dim);
    const std::size_t states =
        thread_state_floats(*device.kernels, inputs.heads / inputs.kv.kv_heads, inputs.kv.head_dim);
    CHECK(needed <= workspace.scratch_floats_ && states <= workspace.state_floats_,
          fmt::format("{} heads of {} need more scratch than the workspace has", inputs.heads,
                      inputs.kv.head_dim));
    AttentionWorkspace::Plan(device, inputs, workspace).run();
}

void kv_write(const DeviceContext& device, const KvWriteArgs& args) {
    CHECK(args.kv.data != nullptr && args.kv.head_dim % 16 == 0, "a KV view without memory");
    device.team->for_each(ceil_div(args.rows, kWriteRows), [&](std::int64_t piece) {
        const std::int64_t begin = piece * kWriteRows;
        KvWriteArgs part = args;
        part.rows = std::min(kWriteRows, args.rows - begin);
        part.k += begin * args.k_stride;
        part.v += begin * args.v_stride;
        part.blocks += begin;
        part.slots += begin;
        device.kernels->kv_write(part);
    });
}

std::size_t kv_block_bytes(KvDType dtype, std::int32_t kv_heads, std::int32_t head_dim) {
    return 2 * kv_part_bytes(dtype, head_dim) * static_cast<std::size_t>(kv_heads);
}

}  // namespace pagoda::kernels
