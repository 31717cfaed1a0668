#include "model/model.h"

#include <cstring>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "kernels/ops/attention.h"
#include "kernels/ops/elementwise.h"
#include "kernels/ops/heads.h"
#include "kernels/ops/linear.h"
#include "model/registry.h"
#include "model/weights.h"

namespace pagoda::model {
namespace {

using kernels::Activations;
using kernels::AttentionWorkspace;
using kernels::DeviceContext;
using kernels::PagedKvView;

std::int64_t widest_input(const DecoderSpec& spec) {
    return std::max(spec.hidden, spec.heads * spec.head_dim);
}

AttentionWorkspace::Limits attention_limits(const DecoderSpec& spec, const ModelLimits& limits) {
    return {.max_rows = limits.max_rows,
            .max_sequences = limits.max_sequences,
            .max_positions = limits.max_positions,
            .heads = spec.heads,
            .kv_heads = spec.kv_heads,
            .head_dim = spec.head_dim};
}

// Float buffers of a step. All shapes are [max_rows, ...]; made once.
struct Workspace {
    std::vector<float> hidden;    // [rows, hidden]: the residual stream
    std::vector<float> normed;    // [rows, hidden]
    std::vector<float> branch;    // [rows, hidden]: what attention or MLP adds
    std::vector<float> q, k, v;   // [rows, heads * head_dim], [rows, kv_heads * head_dim] twice
    std::vector<float> attended;  // [rows, heads * head_dim]
    std::vector<float> gate, up;  // [rows, ffn]
    std::vector<float> cos, sin;  // [ropes][rows, rotary_dim / 2]
    std::vector<std::int64_t> positions;  // [rows]

    Workspace(const DecoderSpec& spec, std::int64_t rows) {
        const auto sized = [rows](std::int64_t cols) {
            return std::vector<float>(static_cast<std::size_t>(rows * cols));
        };
        hidden = sized(spec.hidden);
        normed = sized(spec.hidden);
        branch = sized(spec.hidden);
        q = sized(spec.heads * spec.head_dim);
        attended = q;
        k = sized(spec.kv_heads * spec.head_dim);
        v = k;
        gate = sized(spec.ffn);
        up = gate;
        std::int64_t angles = 0;
        for (const RopeSpec& rope : spec.ropes) angles += rope.rotary_dim / 2;
        cos = sized(angles);
        sin = cos;
        positions.resize(static_cast<std::size_t>(rows));
    }

    [[nodiscard]] static std::uint64_t bytes(const DecoderSpec& spec, std::int64_t rows) {
        std::int64_t cols = 3 * spec.hidden + 2 * spec.heads * spec.head_dim +
                            2 * spec.kv_heads * spec.head_dim + 2 * spec.ffn;
        for (const RopeSpec& rope : spec.ropes) cols += rope.rotary_dim;
        return static_cast<std::uint64_t>(rows) *
               (static_cast<std::uint64_t>(cols) * sizeof(float) + sizeof(std::int64_t));
    }
};

const float* data_or_null(const Vector& values) {
    return values.empty() ? nullptr : values.data();
}

// What a batch means to one KV group.
struct GroupBatch {
    std::vector<kernels::SequenceRows> sequences;
    std::vector<std::int32_t> blocks, slots;  // [rows] where each row's K and V go
};

}  // namespace

struct Model::Impl {
    Impl(DecoderSpec decoder_spec, DecoderWeights decoder_weights, const DeviceContext& context,
         const ModelLimits& model_limits)
        : spec(std::move(decoder_spec)),
          weights(std::move(decoder_weights)),
          device(context),
          limits(model_limits),
          workspace(spec, limits.max_rows),
          activations(device, std::max(limits.max_rows, limits.max_logit_rows), widest_input(spec)),
          gated(device, limits.max_rows, spec.ffn),
          attention_workspace(device, attention_limits(spec, limits)),
          logit_rows(static_cast<std::size_t>(limits.max_logit_rows * spec.hidden)) {
        for (const RopeSpec& rope : spec.ropes) ropes.emplace_back(rope, weights.rope_divisors);
        const std::vector<KvGroup> groups = kv_groups(spec);
        group_batches.resize(groups.size());
        group_of_layer.resize(spec.layers.size());
        for (std::size_t group = 0; group < groups.size(); ++group) {
            for (const std::int64_t layer : groups[group].layers)
                group_of_layer[static_cast<std::size_t>(layer)] = group;
        }
    }

    void prepare(const ForwardBatch& batch);
    void find_slots(const ForwardBatch& batch, std::size_t group);
    void fill_angles();
    void attention_block(std::size_t number, const PagedKvView& kv);
    void mlp_block(std::size_t number);
    [[nodiscard]] std::int64_t first_angle(std::size_t rope) const;
    void place_heads(std::size_t number, const PagedKvView& kv);
    // The residual stream through a norm into ws.normed.
    [[nodiscard]] kernels::RmsNormArgs norm_args(const Vector& weight);
    void norm(const Vector& weight, const float* in, float* out, std::int64_t count,
              std::int64_t cols);
    void add_branch(const LinearWeight& layer, Activations& in, const Vector& post_norm);

    DecoderSpec spec;
    DecoderWeights weights;
    DeviceContext device;
    ModelLimits limits;
    // The embedding rows are read from the file's mapping while the model lives.
    std::shared_ptr<const formats::CheckpointStorage> storage;
    std::vector<RopeTable> ropes;
    std::vector<std::size_t> group_of_layer;

    std::int64_t rows = 0;  // of the current batch
    Workspace workspace;
    Activations activations;
    Activations gated;  // what MLPs' down reads
    AttentionWorkspace attention_workspace;
    std::vector<GroupBatch> group_batches;
    std::vector<float> logit_rows;  // [max_logit_rows, hidden]
};

// Token rows to hidden states, and what the layers need to know of positions and blocks.
void Model::Impl::prepare(const ForwardBatch& batch) {
    rows = static_cast<std::int64_t>(batch.tokens.size());
    CHECK(rows > 0 && rows <= limits.max_rows, fmt::format("a batch of {} rows", rows));
    kernels::embed(device, weights.embedding, batch.tokens, spec.embedding_scale,
                   workspace.hidden.data());
    for (const SequenceSlice& slice : batch.sequences) {
        CHECK(slice.first_position + slice.num_rows <= limits.max_positions,
              "a position beyond max_positions");
        for (std::int64_t offset = 0; offset < slice.num_rows; ++offset)
            workspace.positions[static_cast<std::size_t>(slice.first_row + offset)] =
                slice.first_position + offset;
    }
    for (std::size_t group = 0; group < group_batches.size(); ++group) find_slots(batch, group);
    fill_angles();
}

// Where each row's K and V go in the blocks of a group.
void Model::Impl::find_slots(const ForwardBatch& batch, std::size_t group) {
    GroupBatch& target = group_batches[group];
    target.sequences.clear();
    target.blocks.resize(static_cast<std::size_t>(rows));
    target.slots.resize(static_cast<std::size_t>(rows));
    for (const SequenceSlice& slice : batch.sequences) {
        const std::span<const std::int32_t> table = slice.block_tables[group];
        target.sequences.push_back({slice.first_row, slice.num_rows, slice.first_position, table});
        for (std::int64_t offset = 0; offset < slice.num_rows; ++offset) {
            const auto row = static_cast<std::size_t>(slice.first_row + offset);
            const std::int64_t position = workspace.positions[row];
            target.blocks[row] = table[static_cast<std::size_t>(position / kernels::kBlockTokens)];
            target.slots[row] = static_cast<std::int32_t>(position % kernels::kBlockTokens);
        }
    }
}

// Sines and cosines in double take some microseconds a row: the team shares the rows.
void Model::Impl::fill_angles() {
    device.team->for_each(rows, [&](std::int64_t row) {
        std::int64_t angles = 0;
        for (const RopeTable& table : ropes) {
            const auto at = static_cast<std::size_t>(angles + row * table.pairs());
            table.write(workspace.positions[static_cast<std::size_t>(row)], &workspace.cos[at],
                        &workspace.sin[at]);
            angles += limits.max_rows * table.pairs();
        }
    });
}

kernels::RmsNormArgs Model::Impl::norm_args(const Vector& weight) {
    return {.in = workspace.hidden.data(),
            .in_stride = spec.hidden,
            .out = workspace.normed.data(),
            .out_stride = spec.hidden,
            .weight = weight.data(),
            .rows = rows,
            .cols = spec.hidden,
            .epsilon = spec.norm_epsilon};
}

void Model::Impl::norm(const Vector& weight, const float* in, float* out, std::int64_t count,
                       std::int64_t cols) {
    kernels::rms_norm(device, {.in = in,
                               .in_stride = cols,
                               .out = out,
                               .out_stride = cols,
                               .weight = weight.data(),
                               .rows = count,
                               .cols = cols,
                               .epsilon = spec.norm_epsilon});
}

// The angles of a rope stand behind those of the ones before it.
std::int64_t Model::Impl::first_angle(std::size_t rope) const {
    std::int64_t angles = 0;
    for (std::size_t before = 0; before < rope; ++before)
        angles += limits.max_rows * ropes[before].pairs();
    return angles;
}

// hidden += layer(in), through a norm where the model has one there.
void Model::Impl::add_branch(const LinearWeight& layer, Activations& in, const Vector& post_norm) {
    const float* bias = data_or_null(layer.bias);
    if (post_norm.empty()) {
        kernels::linear(device, layer.weight, in,
                        {.out = workspace.hidden.data(),
                         .stride = spec.hidden,
                         .bias = bias,
                         .accumulate = true});
        return;
    }
    kernels::linear(device, layer.weight, in,
                    {.out = workspace.branch.data(), .stride = spec.hidden, .bias = bias});
    norm(post_norm, workspace.branch.data(), workspace.branch.data(), rows, spec.hidden);
    kernels::add(
        device,
        {.x = workspace.hidden.data(), .y = workspace.branch.data(), .count = rows * spec.hidden});
}

void Model::Impl::place_heads(std::size_t number, const PagedKvView& kv) {
    const LayerWeights& layer = weights.layers[number];
    const std::size_t rope = spec.layers[number].rope;
    const GroupBatch& group = group_batches[group_of_layer[number]];
    kernels::place_heads(device, {.q = workspace.q.data(),
                                  .k = workspace.k.data(),
                                  .v = workspace.v.data(),
                                  .rows = rows,
                                  .heads = spec.heads,
                                  .kv_heads = spec.kv_heads,
                                  .head_dim = spec.head_dim,
                                  .q_norm = data_or_null(layer.q_norm),
                                  .k_norm = data_or_null(layer.k_norm),
                                  .norm_epsilon = spec.norm_epsilon,
                                  .rotary_dim = spec.ropes[rope].rotary_dim,
                                  .cos = workspace.cos.data() + first_angle(rope),
                                  .sin = workspace.sin.data() + first_angle(rope),
                                  .style = spec.ropes[rope].style,
                                  .kv = kv,
                                  .blocks = group.blocks.data(),
                                  .slots = group.slots.data()});
}

void Model::Impl::attention_block(std::size_t number, const PagedKvView& kv) {
    const LayerWeights& layer = weights.layers[number];
    const LayerSpec& layer_spec = spec.layers[number];
    const std::int64_t q_cols = spec.heads * spec.head_dim;
    const std::int64_t kv_cols = spec.kv_heads * spec.head_dim;
    Workspace& ws = workspace;

    activations.set_rms_norm(device, norm_args(layer.attention_norm), layer.q.weight);
    const kernels::LinearItem projections[] = {
        {&layer.q.weight,
         {.out = ws.q.data(), .stride = q_cols, .bias = data_or_null(layer.q.bias)}},
        {&layer.k.weight,
         {.out = ws.k.data(), .stride = kv_cols, .bias = data_or_null(layer.k.bias)}},
        {&layer.v.weight,
         {.out = ws.v.data(), .stride = kv_cols, .bias = data_or_null(layer.v.bias)}},
    };
    kernels::linear_all(device, projections, activations);
    place_heads(number, kv);
    const GroupBatch& group = group_batches[group_of_layer[number]];
    kernels::attention(device,
                       {.kv = kv,
                        .q = ws.q.data(),
                        .q_stride = q_cols,
                        .out = ws.attended.data(),
                        .out_stride = q_cols,
                        .heads = spec.heads,
                        .scale = spec.attention_scale,
                        .soft_cap = spec.attention_soft_cap,
                        .window = layer_spec.window,
                        .sequences = group.sequences},
                       attention_workspace);
    activations.set(ws.attended.data(), rows, q_cols, q_cols);
    add_branch(layer.output, activations, layer.post_attention_norm);
}

void Model::Impl::mlp_block(std::size_t number) {
    const LayerWeights& layer = weights.layers[number];
    Workspace& ws = workspace;
    activations.set_rms_norm(device, norm_args(layer.ffn_norm), layer.gate.weight);
    kernels::linear_gated(device,
                          {.gate = &layer.gate.weight,
                           .up = &layer.up.weight,
                           .gate_bias = data_or_null(layer.gate.bias),
                           .up_bias = data_or_null(layer.up.bias),
                           .kind = spec.activation,
                           .reader = &layer.down.weight},
                          activations, {.gate = ws.gate.data(), .up = ws.up.data()}, gated);
    add_branch(layer.down, gated, layer.post_ffn_norm);
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

const DecoderSpec& Model::spec() const {
    return impl_->spec;
}

void Model::forward(const ForwardBatch& batch, std::span<const PagedKvView> kv) {
    CHECK(kv.size() == impl_->spec.layers.size(), "one KV view per layer");
    impl_->prepare(batch);
    for (std::size_t layer = 0; layer < kv.size(); ++layer) {
        impl_->attention_block(layer, kv[layer]);
        impl_->mlp_block(layer);
    }
}

void Model::logits(std::span<const std::int32_t> rows, std::span<float> out) {
    Impl& impl = *impl_;
    const std::int64_t hidden = impl.spec.hidden;
    const auto count = static_cast<std::int64_t>(rows.size());
    CHECK(count <= impl.limits.max_logit_rows, fmt::format("{} rows of logits", count));
    CHECK(static_cast<std::int64_t>(out.size()) >= count * impl.spec.vocab, "logits don't fit");
    if (count == 0) return;
    float* gathered = impl.logit_rows.data();
    for (std::int64_t row = 0; row < count; ++row) {
        const std::int64_t from = rows[static_cast<std::size_t>(row)];
        CHECK(from >= 0 && from < impl.rows, "a row outside of the batch");
        std::memcpy(gathered + row * hidden, impl.workspace.hidden.data() + from * hidden,
                    static_cast<std::size_t>(hidden) * sizeof(float));
    }
    impl.norm(impl.weights.output_norm, gathered, gathered, count, hidden);
    impl.activations.set(gathered, count, hidden, hidden);
    kernels::linear(impl.device, impl.weights.head.weight, impl.activations,
                    {.out = out.data(), .stride = impl.spec.vocab});
    if (impl.spec.final_soft_cap > 0)
        kernels::soft_cap(
            impl.device,
            {.x = out.data(), .count = count * impl.spec.vocab, .cap = impl.spec.final_soft_cap});
}

base::Result<std::unique_ptr<Model>> Model::load(const formats::Checkpoint& checkpoint,
                                                 const DeviceContext& device,
                                                 const ModelLimits& limits,
                                                 const LoadProgress& progress,
                                                 const PackedCacheOptions& cache) {
    auto spec = read_decoder_spec(checkpoint);
    if (!spec) return std::move(spec).error();
    auto weights = load_weights(checkpoint, *spec, device, progress, cache);
    if (!weights) return std::move(weights).error();
    auto impl =
        std::make_unique<Impl>(std::move(spec).value(), std::move(weights).value(), device, limits);
    impl->storage = checkpoint.storage;
    return std::unique_ptr<Model>(new Model(std::move(impl)));
}

RunnerFloats runner_floats(std::int64_t vocab, std::int64_t max_logit_rows, int num_threads) {
    return {.logits = static_cast<std::size_t>(max_logit_rows * vocab),
            .scratch = static_cast<std::size_t>(num_threads * vocab)};
}

base::Result<ModelSizes> measure(const formats::Checkpoint& checkpoint, const DeviceContext& device,
                                 const ModelLimits& limits, kernels::KvDType kv) {
    const auto spec = read_decoder_spec(checkpoint);
    if (!spec) return spec.error();
    const auto weights = measure_weights(checkpoint, *spec, *device.kernels);
    if (!weights) return weights.error();
    ModelSizes sizes{.weights = *weights,
                     .vocab = spec->vocab,
                     .context_length = spec->context_length,
                     .groups = kv_groups(*spec)};
    const RunnerFloats runner =
        runner_floats(spec->vocab, limits.max_logit_rows, device.team->num_threads());
    sizes.workspace =
        Workspace::bytes(*spec, limits.max_rows) +
        Activations::bytes(*device.kernels, std::max(limits.max_rows, limits.max_logit_rows),
                           widest_input(*spec)) +
        Activations::bytes(*device.kernels, limits.max_rows, spec->ffn) +
        AttentionWorkspace::bytes(device, attention_limits(*spec, limits)) +
        (static_cast<std::uint64_t>(limits.max_logit_rows * spec->hidden) + runner.logits +
         runner.scratch) *
            sizeof(float);
    const std::uint64_t layer_block = kernels::kv_block_bytes(
        kv, static_cast<std::int32_t>(spec->kv_heads), static_cast<std::int32_t>(spec->head_dim));
    for (const KvGroup& group : sizes.groups)
        sizes.block_bytes.push_back(layer_block * group.layers.size());
    return sizes;
}

}  // namespace pagoda::model
