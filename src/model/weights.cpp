#include "model/weights.h"

#include <cstring>
#include <unordered_set>

#include <fmt/core.h>

namespace pagoda::model {
namespace {

using base::Error;
using base::ErrorCode;
using base::Status;
using formats::Checkpoint;
using formats::CheckpointTensor;

constexpr std::string_view kHead = "output";

std::string shape_text(const std::vector<std::int64_t>& shape) {
    std::string text;
    for (const std::int64_t extent : shape)
        text += fmt::format("{}{}", text.empty() ? "" : ", ", extent);
    return "[" + text + "]";
}

// Rounding the inputs of q, k, v and of the head costs the most quality (docs/performance.md).
kernels::Rounding rounding_of(std::string_view stem) {
    const bool is_sensitive = stem.ends_with("attn_q") || stem.ends_with("attn_k") ||
                              stem.ends_with("attn_v") || stem == kHead;
    return is_sensitive ? kernels::Rounding::kTwice : kernels::Rounding::kOnce;
}

// Finds tensors, checks them, and remembers which were used. With a null sink it only measures.
class Binder {
  public:
    Binder(const Checkpoint& checkpoint, const kernels::Kernels& table)
        : checkpoint_(checkpoint), table_(table) {}
    Binder(const Checkpoint& checkpoint, const kernels::DeviceContext& device,
           const LoadProgress& progress)
        : checkpoint_(checkpoint),
          table_(*device.kernels),
          device_(&device),
          progress_(progress),
          total_(checkpoint.tensor_bytes()) {}

    Status linear(const std::string& stem, std::int64_t out, std::int64_t in, Presence bias,
                  LinearWeight& target) {
        const CheckpointTensor* tensor = nullptr;
        if (const auto found = find(stem + ".weight", {out, in}, Presence::kAlways, tensor); !found)
            return found;
        if (const auto packed = pack(*tensor, rounding_of(stem), target); !packed) return packed;
        return vector(stem + ".bias", out, bias, target.bias);
    }

    Status pack(const CheckpointTensor& tensor, kernels::Rounding rounding, LinearWeight& target) {
        if (auto supported = kernels::supports_weight(table_, tensor.view); !supported) {
            Error error = std::move(supported).error();
            error.message =
                fmt::format("{}: tensor {}: {}", tensor.file, tensor.name, error.message);
            error.param = tensor.name;
            return error;
        }
        packed_bytes_ += kernels::packed_weight_bytes(table_, tensor.view);
        if (device_ == nullptr) return {};
        target.weight = kernels::Weight(*device_, tensor.view, rounding);
        done_ += tensor.view.bytes;
        if (checkpoint_.storage) checkpoint_.storage->release(tensor.view.data, tensor.view.bytes);
        if (progress_) progress_(done_, total_);
        return {};
    }

    // A small tensor as floats, whatever its type.
    Status vector(const std::string& name, std::int64_t size, Presence presence, Vector& target) {
        const CheckpointTensor* tensor = nullptr;
        if (const auto found = find(name, {size}, presence, tensor); !found || tensor == nullptr)
            return found;
        packed_bytes_ += static_cast<std::uint64_t>(size) * sizeof(float);
        if (device_ == nullptr) return {};
        target.resize(static_cast<std::size_t>(size));
        table_.dequantize({.dtype = tensor->view.dtype,
                           .source = tensor->view.data,
                           .rows = 1,
                           .cols = size,
                           .out = target.data()});
        done_ += tensor->view.bytes;
        return {};
    }

    Status find(const std::string& name, const std::vector<std::int64_t>& shape, Presence presence,
                const CheckpointTensor*& result) {
        result = nullptr;
        if (presence == Presence::kNever) return {};
        const CheckpointTensor* tensor = checkpoint_.find_tensor(name);
        if (tensor == nullptr) {
            if (presence == Presence::kOptional) return {};
            return Error{ErrorCode::kDataLoss,
                         fmt::format("{}: tensor {} is missing", checkpoint_.path, name), name};
        }
        if (tensor->view.shape != shape)
            return Error{
                ErrorCode::kDataLoss,
                fmt::format("{}: tensor {} has shape {}, the hyperparameters say {}", tensor->file,
                            name, shape_text(tensor->view.shape), shape_text(shape)),
                name};
        used_.insert(tensor);
        result = tensor;
        return {};
    }

    // Every tensor must have played a part.
    [[nodiscard]] Status finish() const {
        for (const CheckpointTensor& tensor : checkpoint_.tensors) {
            if (used_.contains(&tensor)) continue;
            return Error{ErrorCode::kUnsupported,
                         fmt::format("{}: tensor {} has no place in a {} model as it is known here",
                                     tensor.file, tensor.name, checkpoint_.architecture),
                         tensor.name};
        }
        return {};
    }

    [[nodiscard]] std::uint64_t packed_bytes() const { return packed_bytes_; }

  private:
    const Checkpoint& checkpoint_;
    const kernels::Kernels& table_;
    const kernels::DeviceContext* device_ = nullptr;  // null: measure only
    LoadProgress progress_;
    std::uint64_t done_ = 0, total_ = 0, packed_bytes_ = 0;
    std::unordered_set<const CheckpointTensor*> used_;
};

Status bind_attention(Binder& binder, const DecoderSpec& spec, const std::string& prefix,
                      LayerWeights& layer) {
    const std::int64_t q_size = spec.heads * spec.head_dim;
    const std::int64_t kv_size = spec.kv_heads * spec.head_dim;
    const Presence output_bias =
        spec.qkv_bias == Presence::kOptional ? Presence::kOptional : Presence::kNever;
    auto status = binder.vector(prefix + "attn_norm.weight", spec.hidden, Presence::kAlways,
                                layer.attention_norm);
    if (status)
        status = binder.linear(prefix + "attn_q", q_size, spec.hidden, spec.qkv_bias, layer.q);
    if (status)
        status = binder.linear(prefix + "attn_k", kv_size, spec.hidden, spec.qkv_bias, layer.k);
    if (status)
        status = binder.linear(prefix + "attn_v", kv_size, spec.hidden, spec.qkv_bias, layer.v);
    if (status)
        status =
            binder.linear(prefix + "attn_output", spec.hidden, q_size, output_bias, layer.output);
    if (status)
        status =
            binder.vector(prefix + "attn_q_norm.weight", spec.head_dim, spec.qk_norm, layer.q_norm);
    if (status)
        status =
            binder.vector(prefix + "attn_k_norm.weight", spec.head_dim, spec.qk_norm, layer.k_norm);
    if (status)
        status = binder.vector(prefix + "post_attention_norm.weight", spec.hidden, spec.post_norms,
                               layer.post_attention_norm);
    return status;
}

Status bind_mlp(Binder& binder, const DecoderSpec& spec, const std::string& prefix,
                LayerWeights& layer) {
    const Presence bias =
        spec.qkv_bias == Presence::kOptional ? Presence::kOptional : Presence::kNever;
    auto status =
        binder.vector(prefix + "ffn_norm.weight", spec.hidden, Presence::kAlways, layer.ffn_norm);
    if (status)
        status = binder.linear(prefix + "ffn_gate", spec.ffn, spec.hidden, bias, layer.gate);
    if (status) status = binder.linear(prefix + "ffn_up", spec.ffn, spec.hidden, bias, layer.up);
    if (status)
        status = binder.linear(prefix + "ffn_down", spec.hidden, spec.ffn, bias, layer.down);
    if (status)
        status = binder.vector(prefix + "post_ffw_norm.weight", spec.hidden, spec.post_norms,
                               layer.post_ffn_norm);
    return status;
}

Status bind_rope(Binder& binder, const DecoderSpec& spec, DecoderWeights& weights) {
    const std::int64_t pairs = spec.ropes.front().rotary_dim / 2;
    const auto status =
        binder.vector("rope_freqs.weight", pairs, Presence::kOptional, weights.rope_divisors);
    if (!status) return status;
    for (const float divisor : weights.rope_divisors) {
        if (divisor > 0.0F) continue;
        return Error{ErrorCode::kDataLoss,
                     fmt::format("tensor rope_freqs.weight holds {}, must be above 0", divisor),
                     "rope_freqs.weight"};
    }
    return {};
}

Status bind_all(Binder& binder, const DecoderSpec& spec, DecoderWeights& weights) {
    const CheckpointTensor* embedding = nullptr;
    auto status =
        binder.find("token_embd.weight", {spec.vocab, spec.hidden}, Presence::kAlways, embedding);
    if (!status) return status;
    weights.embedding = embedding->view;

    weights.layers.resize(spec.layers.size());
    for (std::size_t number = 0; number < spec.layers.size() && status; ++number) {
        const std::string prefix = fmt::format("blk.{}.", number);
        status = bind_attention(binder, spec, prefix, weights.layers[number]);
        if (status) status = bind_mlp(binder, spec, prefix, weights.layers[number]);
    }
    if (status)
        status = binder.vector("output_norm.weight", spec.hidden, Presence::kAlways,
                               weights.output_norm);
    if (status) status = bind_rope(binder, spec, weights);
    if (!status) return status;

    const CheckpointTensor* head = nullptr;
    status = binder.find("output.weight", {spec.vocab, spec.hidden}, Presence::kOptional, head);
    if (status)
        status =
            binder.pack(head != nullptr ? *head : *embedding, rounding_of(kHead), weights.head);
    return status ? binder.finish() : status;
}

}  // namespace

base::Result<DecoderWeights> load_weights(const Checkpoint& checkpoint, const DecoderSpec& spec,
                                          const kernels::DeviceContext& device,
                                          const LoadProgress& progress) {
    DecoderWeights weights;
    Binder binder(checkpoint, device, progress);
    if (auto status = bind_all(binder, spec, weights); !status) return std::move(status).error();
    return weights;
}

base::Result<std::uint64_t> measure_weights(const Checkpoint& checkpoint, const DecoderSpec& spec,
                                            const kernels::Kernels& kernels) {
    DecoderWeights weights;
    Binder binder(checkpoint, kernels);
    if (auto status = bind_all(binder, spec, weights); !status) return std::move(status).error();
    return binder.packed_bytes();
}

}  // namespace pagoda::model
