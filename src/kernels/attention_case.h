#pragma once
// A sequence with KV in paged memory, for the tests of attention: queries, keys and values of
// every position, blocks in shuffled order, and NaN in every slot that holds no token of it.
// A value type for tests; not thread-safe.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/ops/attention.h"
#include "tensor/aligned_buffer.h"
#include "tensor/half.h"

namespace pagoda::kernels {

struct AttentionCase {
    std::string name;
    std::int32_t kv_heads = 1;
    std::int32_t group = 1;
    std::int32_t head_dim = 64;
    std::int64_t positions = 1;  // tokens of the sequence
    KvDType dtype = KvDType::kBF16;
    std::int64_t window = 0;
    float soft_cap = 0;
    bool has_sinks = false;
    float query_size = 1;  // standard deviation of q
    [[nodiscard]] std::int64_t heads() const { return std::int64_t{kv_heads} * group; }
    [[nodiscard]] std::int64_t q_stride() const { return heads() * head_dim; }
    [[nodiscard]] std::int64_t kv_stride() const { return std::int64_t{kv_heads} * head_dim; }
    [[nodiscard]] float scale() const { return 1 / std::sqrt(static_cast<float>(head_dim)); }
};

class PagedSequence {
  public:
    // `placement` shuffles the blocks; it must change no result.
    PagedSequence(const Kernels& kernels, const AttentionCase& c, unsigned placement = 1)
        : case_(c),
          q_(random(c.positions * c.q_stride(), c.query_size, 11)),
          k_(random(c.positions * c.kv_stride(), 1, 12)),
          v_(random(c.positions * c.kv_stride(), 1, 13)),
          sinks_(random(c.heads(), 2, 14)) {
        const std::int64_t used = (c.positions + kBlockTokens - 1) / kBlockTokens;
        std::vector<std::int32_t> ids(static_cast<std::size_t>(used + 3));
        std::iota(ids.begin(), ids.end(), 0);
        std::shuffle(ids.begin(), ids.end(), std::mt19937(placement));
        table_.assign(ids.begin(), ids.begin() + used);
        view_ = {.dtype = c.dtype,
                 .kv_heads = c.kv_heads,
                 .head_dim = c.head_dim,
                 .num_blocks = used + 3,
                 .block_bytes = kv_block_bytes(c.dtype, c.kv_heads, c.head_dim),
                 .data = nullptr};
        memory_ =
            tensor::AlignedBuffer(static_cast<std::size_t>(view_.num_blocks) * view_.block_bytes);
        std::memset(memory_.data(), 0xff, memory_.bytes());  // NaN as value or scale
        view_.data = memory_.data();
        write(kernels);
    }

    // Makes every token from `position` on look like another owner's leftovers.
    void forget_from(const Kernels& kernels, std::int64_t position) {
        const float nan = std::numeric_limits<float>::quiet_NaN();
        std::fill(k_.begin() + position * case_.kv_stride(), k_.end(), nan);
        std::fill(v_.begin() + position * case_.kv_stride(), v_.end(), nan);
        write(kernels);
    }

    [[nodiscard]] AttentionArgs args(std::int64_t row_begin, std::int64_t rows) const {
        const std::int64_t first_key =
            case_.window > 0 ? std::max<std::int64_t>(0, row_begin - case_.window + 1) : 0;
        return {.kv = view_,
                .block_table = table_.data(),
                .q = q_.data() + row_begin * case_.q_stride(),
                .q_stride = case_.q_stride(),
                .out = nullptr,
                .out_stride = case_.q_stride(),
                .row_index = nullptr,
                .rows = rows,
                .first_position = row_begin,
                .kv_head = 0,
                .group = case_.group,
                .scale = case_.scale(),
                .soft_cap = case_.soft_cap,
                .window = case_.window,
                .sinks = sinks(),
                .chunk_begin = first_key / kAttentionChunk,
                .chunk_end = (row_begin + rows - 1) / kAttentionChunk + 1,
                .begin_state = nullptr,
                .end_state = nullptr,
                .partials = nullptr,
                .scratch = nullptr};
    }

    // [rows, heads, head_dim] of rows [row_begin, row_begin + rows), one kernel call a KV head.
    [[nodiscard]] std::vector<float> attend(const Kernels& kernels, std::int64_t row_begin,
                                            std::int64_t rows) const {
        std::vector<float> out(static_cast<std::size_t>(rows * case_.q_stride()), -7);
        std::vector<float> scratch = scratch_for(kernels, rows);
        AttentionArgs call = args(row_begin, rows);
        call.out = out.data();
        call.scratch = scratch.data();
        for (; call.kv_head < case_.kv_heads; ++call.kv_head) kernels.attention(call);
        return out;
    }

    // The same by pieces of `piece` chunks and a merge.
    [[nodiscard]] std::vector<float> attend_split(const Kernels& kernels, std::int64_t row_begin,
                                                  std::int64_t rows, std::int64_t piece) const {
        std::vector<float> out(static_cast<std::size_t>(rows * case_.q_stride()), -7);
        std::vector<float> scratch = scratch_for(kernels, rows);
        const AttentionArgs whole = args(row_begin, rows);
        const std::int64_t chunks = whole.chunk_end - whole.chunk_begin;
        const std::int64_t chunk_floats = rows * case_.group * (case_.head_dim + 2);
        std::vector<float> partials(static_cast<std::size_t>(chunks * chunk_floats),
                                    std::numeric_limits<float>::quiet_NaN());
        for (std::int32_t head = 0; head < case_.kv_heads; ++head) {
            for (std::int64_t c = 0; c < chunks; c += piece) {
                AttentionArgs call = whole;
                call.kv_head = head;
                call.scratch = scratch.data();
                call.chunk_begin = whole.chunk_begin + c;
                call.chunk_end = std::min(call.chunk_begin + piece, whole.chunk_end);
                call.partials = partials.data() + c * chunk_floats;
                kernels.attention(call);
            }
            kernels.attention_merge({.partials = partials.data(),
                                     .begin_state = nullptr,
                                     .num_chunks = chunks,
                                     .rows = rows,
                                     .head_dim = case_.head_dim,
                                     .kv_head = head,
                                     .group = case_.group,
                                     .sinks = sinks(),
                                     .out = out.data(),
                                     .out_stride = case_.q_stride(),
                                     .scratch = scratch.data()});
        }
        return out;
    }

    // One row by the textbook, in double.
    [[nodiscard]] std::vector<double> exact(std::int64_t row) const {
        std::vector<double> out(static_cast<std::size_t>(case_.q_stride()), 0.0);
        for (std::int64_t head = 0; head < case_.heads(); ++head) exact_head(row, head, out);
        return out;
    }

    [[nodiscard]] const PagedKvView& view() const { return view_; }
    [[nodiscard]] const std::vector<std::int32_t>& table() const { return table_; }
    [[nodiscard]] const float* queries() const { return q_.data(); }
    [[nodiscard]] const float* sinks() const { return case_.has_sinks ? sinks_.data() : nullptr; }
    [[nodiscard]] double largest_score() const { return largest_score_; }

  private:
    static std::vector<float> random(std::int64_t count, float size, unsigned seed) {
        std::mt19937 engine(seed);
        std::normal_distribution<float> normal(0, size);
        std::vector<float> values(static_cast<std::size_t>(count));
        for (float& value : values) value = normal(engine);
        return values;
    }

    void write(const Kernels& kernels) {
        stored_k_ = as_stored(k_);
        stored_v_ = as_stored(v_);
        const auto count = static_cast<std::size_t>(case_.positions);
        std::vector<std::int32_t> blocks(count);
        std::vector<std::int32_t> slots(count);
        for (std::size_t p = 0; p < count; ++p) {
            blocks[p] = table_[p / kBlockTokens];
            slots[p] = static_cast<std::int32_t>(p % kBlockTokens);
        }
        kernels.kv_write({.kv = view_,
                          .k = k_.data(),
                          .v = v_.data(),
                          .k_stride = case_.kv_stride(),
                          .v_stride = case_.kv_stride(),
                          .rows = case_.positions,
                          .blocks = blocks.data(),
                          .slots = slots.data()});
    }

    [[nodiscard]] std::vector<float> scratch_for(const Kernels& kernels, std::int64_t rows) const {
        const std::size_t floats =
            kernels.attention_scratch_floats(rows, case_.group, case_.head_dim);
        return std::vector<float>(floats, std::numeric_limits<float>::quiet_NaN());
    }

    // What values of K or V are after they were rounded to the type of the cache.
    [[nodiscard]] std::vector<double> as_stored(const std::vector<float>& values) const {
        std::vector<double> stored(values.begin(), values.end());
        if (case_.dtype == KvDType::kBF16) {
            for (std::size_t i = 0; i < values.size(); ++i)
                stored[i] = tensor::bf16_to_float(tensor::float_to_bf16(values[i]));
        }
        if (case_.dtype != KvDType::kInt8) return stored;
        const auto dims = static_cast<std::size_t>(case_.head_dim);
        for (std::size_t first = 0; first < values.size(); first += dims) {
            float largest = 0;
            for (std::size_t d = 0; d < dims; ++d)
                largest = std::max(largest, std::abs(values[first + d]));
            for (std::size_t d = 0; d < dims; ++d) {
                stored[first + d] = std::nearbyint(values[first + d] * (127 / largest)) *
                                    static_cast<double>(largest / 127);
            }
        }
        return stored;
    }
    [[nodiscard]] double stored(const std::vector<double>& values, std::int64_t position,
                                std::int64_t head, std::int64_t dim) const {
        const std::int64_t at = position * case_.kv_stride() + head * case_.head_dim + dim;
        return values[static_cast<std::size_t>(at)];
    }

    void exact_head(std::int64_t row, std::int64_t head, std::vector<double>& out) const {
        const std::int64_t kv_head = head / case_.group;
        const std::int64_t first =
            case_.window > 0 ? std::max<std::int64_t>(0, row - case_.window + 1) : 0;
        std::vector<double> scores;
        for (std::int64_t key = first; key <= row; ++key) {
            double dot = 0;
            for (std::int64_t d = 0; d < case_.head_dim; ++d) {
                const std::int64_t at = row * case_.q_stride() + head * case_.head_dim + d;
                dot += static_cast<double>(q_[static_cast<std::size_t>(at)]) *
                       stored(stored_k_, key, kv_head, d);
            }
            dot *= static_cast<double>(case_.scale());
            largest_score_ = std::max(largest_score_, std::abs(dot));
            const double cap = case_.soft_cap;
            scores.push_back(cap == 0 ? dot : cap * std::tanh(dot / cap));
        }
        double max = *std::max_element(scores.begin(), scores.end());
        double sum = 0;
        if (case_.has_sinks) {
            const double sink = sinks_[static_cast<std::size_t>(head)];
            max = std::max(max, sink);
            sum = std::exp(sink - max);
        }
        for (double& score : scores) sum += score = std::exp(score - max);
        for (std::int64_t d = 0; d < case_.head_dim; ++d) {
            double value = 0;
            for (std::size_t i = 0; i < scores.size(); ++i) {
                value +=
                    scores[i] * stored(stored_v_, first + static_cast<std::int64_t>(i), kv_head, d);
            }
            out[static_cast<std::size_t>(head * case_.head_dim + d)] = value / sum;
        }
    }

    AttentionCase case_;
    std::vector<float> q_, k_, v_, sinks_;
    std::vector<double> stored_k_, stored_v_;
    std::vector<std::int32_t> table_;
    tensor::AlignedBuffer memory_;
    PagedKvView view_;
    mutable double largest_score_ = 0;
};

}  // namespace pagoda::kernels
