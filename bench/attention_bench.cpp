// Speed of one attention kernel call a KV head, on one thread: prefill of 4096 tokens (the masked
// half is not counted) and one decoded row at depth 4096, for llama-like heads (8 KV heads of 64,
// four query heads each). GFLOP/s counts the multiply-adds of scores and weighted sums twice,
// GB/s the K and V that are read.

#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/thread_team.h"
#include "kernels/ops/attention.h"
#include "kernels/registry.h"
#include "tensor/aligned_buffer.h"

namespace pagoda::kernels {
namespace {

constexpr std::int32_t kKvHeads = 8;
constexpr std::int32_t kGroup = 4;
constexpr std::int64_t kHeads = kKvHeads * kGroup;
constexpr std::int64_t kDepth = 4096;

// A layer's KV filled with normal values, and the queries of all positions.
class Layer {
  public:
    Layer(const Kernels& kernels, KvDType dtype, std::int32_t head_dim) {
        const auto num_blocks = static_cast<std::int32_t>(kDepth / kBlockTokens);
        const std::size_t block_bytes = kv_block_bytes(dtype, kKvHeads, head_dim);
        memory_ = tensor::AlignedBuffer(block_bytes * static_cast<std::size_t>(num_blocks));
        view_ = {.dtype = dtype,
                 .kv_heads = kKvHeads,
                 .head_dim = head_dim,
                 .num_blocks = num_blocks,
                 .block_bytes = block_bytes,
                 .data = memory_.data()};
        for (std::int32_t block = 0; block < num_blocks; ++block) table_.push_back(block);
        q_ = random(kDepth * kHeads * head_dim);
        const std::vector<float> kv = random(kDepth * kKvHeads * head_dim);
        std::vector<std::int32_t> blocks;
        std::vector<std::int32_t> slots;
        for (std::int32_t p = 0; p < kDepth; ++p) {
            blocks.push_back(p / kBlockTokens);
            slots.push_back(p % kBlockTokens);
        }
        kernels.kv_write({.kv = view_,
                          .k = kv.data(),
                          .v = kv.data(),
                          .k_stride = kKvHeads * head_dim,
                          .v_stride = kKvHeads * head_dim,
                          .rows = kDepth,
                          .blocks = blocks.data(),
                          .slots = slots.data()});
    }

    // Rows [first, first + rows) of the sequence.
    void attend(const DeviceContext& device, std::int64_t first, std::int64_t rows,
                AttentionWorkspace& workspace, std::vector<float>& out) const {
        const std::int64_t stride = kHeads * view_.head_dim;
        const SequenceRows sequence{
            .first_row = 0, .num_rows = rows, .first_position = first, .block_table = table_};
        attention(device,
                  {.kv = view_,
                   .q = q_.data() + first * stride,
                   .q_stride = stride,
                   .out = out.data(),
                   .out_stride = stride,
                   .heads = kHeads,
                   .scale = 0.125F,
                   .sequences = {&sequence, 1}},
                  workspace);
    }

    [[nodiscard]] std::size_t bytes() const { return memory_.bytes(); }

  private:
    static std::vector<float> random(std::int64_t count) {
        std::mt19937 engine(1);
        std::normal_distribution<float> normal;
        std::vector<float> values(static_cast<std::size_t>(count));
        for (float& value : values) value = normal(engine);
        return values;
    }

    tensor::AlignedBuffer memory_;
    PagedKvView view_;
    std::vector<std::int32_t> table_;
    std::vector<float> q_;
};

void run(benchmark::State& state, const Kernels& kernels, KvDType dtype, std::int64_t rows) {
    const auto head_dim = static_cast<std::int32_t>(state.range(0));
    base::ThreadTeam team(1);
    const DeviceContext device{.kernels = &kernels, .team = &team};
    const Layer layer(kernels, dtype, head_dim);
    AttentionWorkspace workspace(device, {.max_rows = rows,
                                          .max_sequences = 1,
                                          .max_positions = kDepth,
                                          .heads = kHeads,
                                          .kv_heads = kKvHeads,
                                          .head_dim = head_dim});
    std::vector<float> out(static_cast<std::size_t>(rows * kHeads * head_dim));
    const std::int64_t first = kDepth - rows;
    for (auto _ : state) {
        layer.attend(device, first, rows, workspace, out);
        benchmark::DoNotOptimize(out.data());
    }
    const std::int64_t keys = rows * first + rows * (rows + 1) / 2;
    const auto iterations = static_cast<double>(state.iterations());
    state.counters["GFLOP/s"] =
        benchmark::Counter(static_cast<double>(keys * kHeads * head_dim * 4) * 1e-9 * iterations,
                           benchmark::Counter::kIsRate);
    state.counters["GB/s"] = benchmark::Counter(
        static_cast<double>(layer.bytes()) * 1e-9 * iterations, benchmark::Counter::kIsRate);
}

// Independent multiply-adds in registers would be the roof; `bench roof` measures it.
const bool registered = [] {
    for (const Kernels& kernels : all_variants()) {
        if (!contains(detect_cpu_features(), kernels.required)) continue;
        for (const KvDType dtype : {KvDType::kBF16, KvDType::kF32}) {
            const std::string name =
                std::string(kernels.name) + (dtype == KvDType::kBF16 ? "/bf16" : "/f32");
            const bool is_slow = kernels.parent == nullptr;
            for (const auto& [what, rows] : {std::pair<std::string, std::int64_t>{"prefill", 4096},
                                             {"chunk", 256},
                                             {"decode", 1}}) {
                if (is_slow && rows > 1) continue;
                benchmark::RegisterBenchmark(("attention/" + what + "/" + name).c_str(),
                                             [&kernels, dtype, rows](benchmark::State& state) {
                                                 run(state, kernels, dtype, rows);
                                             })
                    ->Arg(64)
                    ->Arg(128)
                    ->Unit(benchmark::kMillisecond);
            }
        }
    }
    return true;
}();

}  // namespace
}  // namespace pagoda::kernels
