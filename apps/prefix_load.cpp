#include "prefix_load.h"

#include <algorithm>
#include <random>

#include <fmt/core.h>

#include "kernels/args.h"

namespace pagoda::apps {
namespace {

constexpr std::int64_t kBlock = kernels::kBlockTokens;

// Positions of one sequence behind the prefix.
std::int64_t own_tokens(const PrefixShape& shape) {
    return 1 + shape.steps * (shape.repeat + 1);
}

std::int64_t own_blocks(const PrefixShape& shape) {
    return (own_tokens(shape) + kBlock - 1) / kBlock;
}

// The executor's view of the load: sequence 0 computes the prefix, the others begin behind it.
class PrefixLoad {
  public:
    PrefixLoad(engine::Executor& executor, const PrefixShape& shape, const model::ModelSizes& sizes,
               std::uint64_t first_id)
        : executor_(executor),
          shape_(shape),
          num_groups_(sizes.groups.size()),
          first_id_(first_id) {
        std::mt19937_64 random(1);
        std::uniform_int_distribution<base::TokenId> token(
            0, static_cast<base::TokenId>(sizes.vocab - 1));
        prefix_.resize(static_cast<std::size_t>(shape.prefix_tokens));
        for (base::TokenId& id : prefix_) id = token(random);
    }

    base::Status prefill() {
        std::vector<engine::NewSequence> incoming = {new_sequence(0, prefix_.back())};
        for (std::int64_t begin = 0; begin < shape_.prefix_tokens; begin += shape_.step_tokens) {
            sched::SequencePlan part{
                .seq = id_of(0),
                .first_position = begin,
                .num_tokens = std::min(shape_.step_tokens, shape_.prefix_tokens - begin),
                .is_restart = begin == 0};
            if (begin == 0) add_blocks(part, 0, shape_.prefix_tokens / kBlock);
            if (const auto status = run({.sequences = {std::move(part)}}, incoming); !status)
                return status;
            incoming.clear();
        }
        return {};
    }

    // One token of every sequence.
    base::Status step() {
        std::vector<engine::NewSequence> incoming;
        sched::StepPlan plan;
        for (std::int64_t index = 1; index <= shape_.concurrency; ++index) {
            sched::SequencePlan part{.seq = id_of(index),
                                     .first_position = shape_.prefix_tokens + num_steps_,
                                     .num_tokens = 1,
                                     .is_sampled = true,
                                     .is_restart = num_steps_ == 0};
            if (num_steps_ == 0) {
                incoming.push_back(new_sequence(index, static_cast<base::TokenId>(index)));
                add_blocks(part, 0, shape_.prefix_tokens / kBlock);
            }
            if (num_steps_ % kBlock == 0)
                add_blocks(part,
                           shape_.prefix_tokens / kBlock + (index - 1) * own_blocks(shape_) +
                               num_steps_ / kBlock,
                           1);
            plan.sequences.push_back(std::move(part));
        }
        ++num_steps_;
        return run(std::move(plan), incoming);
    }

    base::Status end() {
        sched::StepPlan plan;
        for (std::int64_t index = 0; index <= shape_.concurrency; ++index)
            plan.ended.push_back(id_of(index));
        return run(std::move(plan), {});
    }

  private:
    [[nodiscard]] base::SeqId id_of(std::int64_t index) const {
        return base::SeqId(first_id_ + static_cast<std::uint64_t>(index));
    }

    [[nodiscard]] engine::NewSequence new_sequence(std::int64_t index, base::TokenId own) const {
        auto input = std::make_shared<engine::SequenceInput>();
        input->prompt = prefix_;
        input->prompt.push_back(own);
        input->sampling.temperature = 0;
        input->sampling.max_tokens = input->stop.max_tokens = own_tokens(shape_) + 1;
        return {.seq = id_of(index), .input = std::move(input)};
    }

    void add_blocks(sched::SequencePlan& part, std::int64_t first, std::int64_t count) const {
        for (std::size_t group = 0; group < num_groups_; ++group) {
            for (std::int64_t block = first; block < first + count; ++block)
                part.new_blocks.push_back(
                    {.group = static_cast<std::int32_t>(group),
                     .block = base::BlockId(static_cast<std::int32_t>(block))});
        }
    }

    base::Status run(sched::StepPlan plan, std::span<engine::NewSequence> incoming) {
        const engine::StepOutput output = executor_.run(plan, incoming);
        for (const engine::SequenceDetails& details : output.details) {
            if (details.error) return *details.error;
        }
        return {};
    }

    engine::Executor& executor_;
    const PrefixShape& shape_;
    const std::size_t num_groups_;
    const std::uint64_t first_id_;
    std::vector<base::TokenId> prefix_;
    std::int64_t num_steps_ = 0;
};

}  // namespace

std::int64_t PrefixShape::length() const {
    return prefix_tokens + own_tokens(*this);
}

std::int64_t PrefixShape::num_blocks() const {
    return prefix_tokens / kBlock + concurrency * own_blocks(*this);
}

base::Result<std::vector<double>> prefix_step_seconds(engine::Executor& executor,
                                                      const PrefixShape& shape,
                                                      const model::ModelSizes& sizes,
                                                      const kernels::DeviceContext& device,
                                                      std::uint64_t first_id) {
    PrefixLoad load(executor, shape, sizes, first_id);
    if (const auto status = load.prefill(); !status) return status.error();
    std::vector<double> seconds;
    // The first one warms up and does not count.
    for (std::int64_t run = 0; run <= shape.repeat; ++run) {
        const double began = kernels::roof_clock(device, /*all_threads=*/true);
        for (std::int64_t step = 0; step < shape.steps; ++step) {
            if (const auto status = load.step(); !status) return status.error();
        }
        const double took = kernels::roof_clock(device, /*all_threads=*/true) - began;
        if (run > 0) seconds.push_back(took / static_cast<double>(shape.steps));
    }
    if (const auto status = load.end(); !status) return status.error();
    return seconds;
}

StepBound prefix_step_bound(const PrefixShape& shape, const MatrixWork& work,
                            const model::ModelSizes& sizes, const model::DecoderSpec& spec,
                            const kernels::Roof& roof) {
    constexpr double kGiga = 1e9;
    const auto rows = static_cast<double>(shape.concurrency);
    double bytes = work.weight_bytes;
    double products = 0;
    const auto key_products = static_cast<double>(2 * spec.heads * spec.head_dim);
    const std::int64_t own = own_tokens(shape) / 2;
    for (std::size_t group = 0; group < sizes.groups.size(); ++group) {
        const std::int64_t window = sizes.groups[group].window;
        const std::int64_t length = shape.prefix_tokens + own;
        const std::int64_t keys = window == 0 ? length : std::min(length, window);
        const std::int64_t own_keys = std::min(own, keys);
        bytes += (static_cast<double>(keys - own_keys) + rows * static_cast<double>(own_keys)) *
                 static_cast<double>(sizes.block_bytes[group]) / kBlock;
        products += rows * static_cast<double>(keys) *
                    static_cast<double>(sizes.groups[group].layers.size()) * key_products;
    }
    return {.read_seconds = bytes / (roof.read_gb_s * kGiga),
            .arithmetic_seconds = rows * (work.layer_seconds + work.head_seconds) +
                                  2 * products / (roof.f32_gflops * kGiga)};
}

}  // namespace pagoda::apps
