#include "kernel_bench.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/check.h"
#include "bench_options.h"
#include "kernels/kv_format.h"
#include "kernels/ops/attention.h"
#include "kernels/random_weight.h"

namespace pagoda::apps {
namespace {

constexpr double kRunSeconds = 0.08;  // of one run, at least
constexpr int kPeakTries = 2;         // before every run

// A layer's KV, filled, and the queries of one prompt.
class KvLayer {
  public:
    static constexpr std::int32_t kKvHeads = 8, kHeads = 32, kHeadDim = 64;

    KvLayer(const kernels::DeviceContext& device, kernels::KvDType dtype, std::int64_t positions) {
        const std::int64_t num_blocks = positions / kernels::kBlockTokens;
        const std::size_t block_bytes = kernels::kv_block_bytes(dtype, kKvHeads, kHeadDim);
        memory_ = tensor::AlignedBuffer(block_bytes * static_cast<std::size_t>(num_blocks));
        view_ = {.dtype = dtype,
                 .kv_heads = kKvHeads,
                 .head_dim = kHeadDim,
                 .num_blocks = num_blocks,
                 .block_bytes = block_bytes,
                 .data = memory_.data()};
        const std::vector<float> kv = kernels::random_rows(positions, kKvHeads * kHeadDim, 3);
        std::vector<std::int32_t> blocks;
        std::vector<std::int32_t> slots;
        for (std::int32_t position = 0; position < positions; ++position) {
            blocks.push_back(position / kernels::kBlockTokens);
            slots.push_back(position % kernels::kBlockTokens);
            if (slots.back() == 0) table_.push_back(blocks.back());
        }
        kernels::kv_write(device, {.kv = view_,
                                   .k = kv.data(),
                                   .v = kv.data(),
                                   .k_stride = kKvHeads * kHeadDim,
                                   .v_stride = kKvHeads * kHeadDim,
                                   .rows = positions,
                                   .blocks = blocks.data(),
                                   .slots = slots.data()});
    }

    // The last rows of the sequence.
    void attend(const kernels::DeviceContext& device, const std::vector<float>& q,
                kernels::AttentionWorkspace& workspace, std::vector<float>& out) const {
        constexpr std::int64_t kStride = std::int64_t{kHeads} * kHeadDim;
        const auto rows = static_cast<std::int64_t>(q.size()) / kStride;
        const kernels::SequenceRows sequence{
            .first_row = 0,
            .num_rows = rows,
            .first_position =
                static_cast<std::int64_t>(table_.size()) * kernels::kBlockTokens - rows,
            .block_table = table_};
        kernels::attention(device,
                           {.kv = view_,
                            .q = q.data(),
                            .q_stride = kStride,
                            .out = out.data(),
                            .out_stride = kStride,
                            .heads = kHeads,
                            .scale = 0.125F,
                            .sequences = {&sequence, 1}},
                           workspace);
    }
    [[nodiscard]] std::size_t bytes() const { return memory_.bytes(); }

  private:
    tensor::AlignedBuffer memory_;
    kernels::PagedKvView view_;
    std::vector<std::int32_t> table_;
};

// How many things of that size are more than the caches hold, if they are of ordinary size.
std::size_t turns(std::size_t bytes) {
    constexpr std::size_t kMost = 4096;
    return std::clamp<std::size_t>(kernels::roof_read_bytes() / 2 / bytes, 1, kMost);
}

}  // namespace

std::uint64_t linear_bytes(const kernels::Kernels& kernels, tensor::DType dtype, MatrixShape shape,
                           std::int64_t max_rows) {
    const std::uint64_t source =
        static_cast<std::uint64_t>(shape.out) * tensor::row_bytes(dtype, shape.in);
    const std::uint64_t packed = kernels.packed_bytes(dtype, shape.out, shape.in);
    const std::uint64_t floats =
        sizeof(float) * static_cast<std::uint64_t>(max_rows * (shape.in + shape.out));
    return source + packed * turns(packed) + floats +
           kernels::Activations::bytes(kernels, max_rows, shape.in);
}

KernelBench::KernelBench(const kernels::DeviceContext& device, int repeat)
    : device_(device), repeat_(repeat), meter_(device, /*all_threads=*/true) {}

double KernelBench::peak_of(Arithmetic arithmetic) const {
    if (arithmetic == Arithmetic::kInt8) return meter_.int8_gops(kPeakTries);
    const double f32 = meter_.f32_gflops(kPeakTries);
    return arithmetic == Arithmetic::kF32 ? f32 : std::max(f32, meter_.bf16_gflops(kPeakTries));
}

// call() does the work once, on the next operands.
template <class Call>
void KernelBench::measure(const Work& work, const Call& call, KernelRow& row) {
    std::vector<double> gmac_s;
    std::vector<double> peak_shares;
    std::vector<double> read_shares;
    call();  // first touches, and code into the cache
    for (int run = 0; run < repeat_; ++run) {
        const double peak = peak_of(work.arithmetic);
        const double read = meter_.read_gb_s(1);
        const double begin = kernels::roof_clock(device_, /*all_threads=*/true);
        double took = 0;
        int calls = 0;
        for (; took < kRunSeconds; ++calls) {
            call();
            took = kernels::roof_clock(device_, /*all_threads=*/true) - begin;
        }
        const double rate = calls * 1e-9 / took;
        gmac_s.push_back(work.macs * rate);
        peak_shares.push_back(2 * work.macs * rate / peak);
        read_shares.push_back(work.bytes * rate / read);
    }
    row.gmac_s = median(gmac_s);
    row.gb_s = row.gmac_s / work.macs * work.bytes;
    row.peak_share = median(peak_shares);
    row.read_share = median(read_shares);
    const std::vector<double>& nearer = row.peak_share > row.read_share ? peak_shares : read_shares;
    row.share = median(nearer);
    row.least_share = *std::min_element(nearer.begin(), nearer.end());
    row.most_share = *std::max_element(nearer.begin(), nearer.end());
}

std::vector<KernelRow> KernelBench::linear(tensor::DType dtype, MatrixShape shape,
                                           const std::vector<std::int64_t>& rows) {
    const std::vector<std::byte> source = kernels::random_weight(dtype, shape.out, shape.in, 1);
    const tensor::TensorView view{dtype, {shape.out, shape.in}, source.data(), source.size()};
    std::vector<kernels::Weight> weights;
    const std::size_t bytes = kernels::packed_weight_bytes(*device_.kernels, view);
    const std::size_t copies = turns(bytes);
    auto arena = kernels::WeightArena::try_allocate(copies * kernels::WeightArena::padded(bytes));
    CHECK(arena.has_value(), "no memory for the weights of a bench");
    while (weights.size() < copies) weights.emplace_back(device_, view, arena->take(bytes));
    std::vector<KernelRow> results;
    for (const std::int64_t count : rows) {
        KernelRow row{.kernel = "linear",
                      .type = std::string(tensor::info(dtype).name),
                      .shape = shape,
                      .rows = count};
        const std::vector<float> x = kernels::random_rows(count, shape.in, 2);
        std::vector<float> out(static_cast<std::size_t>(count * shape.out));
        kernels::Activations in(device_, count, shape.in);
        in.set(x.data(), count, shape.in, shape.in);  // rounded once: several layers share it
        std::size_t next = 0;
        measure(
            {.macs = static_cast<double>(count) * static_cast<double>(shape.out) *
                     static_cast<double>(shape.in),
             .bytes = static_cast<double>(bytes),
             .arithmetic = arithmetic_of(dtype, device_)},
            [&] {
                kernels::linear(device_, weights[next], in,
                                {.out = out.data(), .stride = shape.out});
                next = (next + 1) % weights.size();
            },
            row);
        results.push_back(std::move(row));
    }
    return results;
}

std::vector<KernelRow> KernelBench::attention(kernels::KvDType dtype) {
    constexpr std::int64_t kPrefill = 4096;
    constexpr std::int64_t kDepth = 8192;
    std::vector<KernelRow> results;
    for (const auto& [rows, positions] :
         {std::pair{kPrefill, kPrefill}, {std::int64_t{1}, kDepth}}) {
        KernelRow row{.kernel = "attention",
                      .type = fmt::format("KV {}", kernels::kv_format(dtype).name),
                      .shape = {KvLayer::kHeads, KvLayer::kHeadDim},
                      .rows = rows,
                      .depth = positions};
        std::vector<KvLayer> layers;
        layers.emplace_back(device_, dtype, positions);
        const std::size_t count = rows == 1 ? turns(layers.front().bytes()) : 1;
        while (layers.size() < count) layers.emplace_back(device_, dtype, positions);
        const std::vector<float> q =
            kernels::random_rows(rows, std::int64_t{KvLayer::kHeads} * KvLayer::kHeadDim, 4);
        std::vector<float> out(q.size());
        kernels::AttentionWorkspace workspace(device_, {.max_rows = rows,
                                                        .max_sequences = 1,
                                                        .max_positions = positions,
                                                        .heads = KvLayer::kHeads,
                                                        .kv_heads = KvLayer::kKvHeads,
                                                        .head_dim = KvLayer::kHeadDim});
        const double keys = static_cast<double>(rows * (positions - rows)) +
                            static_cast<double>(rows * (rows + 1)) / 2;
        std::size_t next = 0;
        measure(
            {.macs = keys * KvLayer::kHeads * KvLayer::kHeadDim * 2,
             .bytes = static_cast<double>(layers.front().bytes())},
            [&] {
                layers[next].attend(device_, q, workspace, out);
                next = (next + 1) % layers.size();
            },
            row);
        results.push_back(std::move(row));
    }
    return results;
}

}  // namespace pagoda::apps
